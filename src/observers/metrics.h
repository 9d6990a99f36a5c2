// Figures of merit with their intervals, from what the predictions observer has counted.
#pragma once

#include "observers/predictions.h"

namespace netmend::observers {

/// All metrics that fit the task, the one that counts first.
std::vector<Metric> measure(const PredictionSettings& settings, const PredictionState& state);

}  // namespace netmend::observers
