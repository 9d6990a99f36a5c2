// The running statistics of the first batch normalisation: what its inputs were like in training.
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
/// How far values are from the running statistics, in running standard deviations: the median over channels, of means
/// and of spreads. Below about 1 is usual.
double statistics_distance(const RunningStatistics& memory, const at::Tensor& values);

}  // namespace netmend::preflight
