// What the first batch normalisation of a network remembers of its training data.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "model/graph.h"

namespace netmend::preflight {

struct RunningStatistics {
  model::ValueId input = model::kAbsent;  ///< what is normalised, channels on axis 1
  at::Tensor mean, variance;
};
/// The first one on the way to `output` that is not folded into weights; nothing when there is none.
std::optional<RunningStatistics> find_running_statistics(const model::Graph& graph, model::ValueId output);
/// How far values are from what is remembered, in the remembered deviations: the middle channel's, of means and of
/// spreads. Below about 1 is usual.
double statistics_distance(const RunningStatistics& memory, const at::Tensor& values);

}  // namespace netmend::preflight
