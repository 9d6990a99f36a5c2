// The gradient of the loss at every weight, added up over inputs.
#pragma once

#include <map>
#include <vector>

#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::localise {

/// By constant: the sum over `samples` of the gradient of each input's loss, in the constant's shape and float64. The
/// order of the samples and the number of workers (0: one per core) change nothing but the last digits, and workers not
/// even these. Constants that the loss does not depend on have zeros.
std::map<model::ValueId, at::Tensor> weight_gradients(const stream::Subject& subject,
                                                      const observers::PredictionSettings& settings,
                                                      const std::vector<model::ValueId>& constants,
                                                      const std::vector<int64_t>& samples, int jobs);

}  // namespace netmend::localise
