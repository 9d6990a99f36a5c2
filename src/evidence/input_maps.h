// Relevance of single inputs, as pictures, words or columns.
#pragma once

#include <vector>

#include "base/run_folder.h"
#include "dataset/dataset.h"
#include "evidence/explanation.h"
#include "observers/input_relevance.h"
#include "observers/predictions.h"

namespace netmend::evidence {

/// Pictures go into the run folder.
std::vector<InputMap> map_inputs(const observers::PredictionSettings& task, const dataset::Dataset& data,
                                 const RunFolder& folder, const std::vector<int64_t>& samples,
                                 const observers::InputExplainer& explainer);

}  // namespace netmend::evidence
