#include "preflight/running_statistics.h"

#include <ATen/ATen.h>

#include "executor/executor.h"

namespace netmend::preflight {

std::optional<RunningStatistics> find_running_statistics(const model::Graph& graph, model::ValueId output) {
  std::vector<bool> needed = executor::needed_nodes(graph, graph.inputs, std::vector{output});
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const model::Node& node = graph.nodes[n];
    if (!needed[n] || node.op != "BatchNormalization" || node.inputs.size() < 5) continue;
    RunningStatistics memory{node.inputs[0], graph.constant(node.inputs[3]), graph.constant(node.inputs[4])};
    if (memory.mean.defined() && memory.variance.defined()) return memory;
  }
  return std::nullopt;
}

double statistics_distance(const RunningStatistics& memory, const at::Tensor& values) {
  at::Tensor by_channel = values.to(at::kDouble).movedim(1, 0).flatten(1);
  if (by_channel.size(0) != memory.mean.numel()) return 0;
  at::Tensor mean = memory.mean.to(at::kDouble), variance = memory.variance.to(at::kDouble).clamp_min(1e-12);
  at::Tensor shift = (by_channel.mean(1) - mean).abs() / variance.sqrt();
  at::Tensor spread = (by_channel.var(1, false).clamp_min(1e-12) / variance).log().abs() / 2;
  return std::max(shift.median().item<double>(), spread.median().item<double>());
}

}  // namespace netmend::preflight
