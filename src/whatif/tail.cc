#include "whatif/tail.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace netmend::whatif {

using model::Graph;
using model::kAbsent;
using model::ValueId;

Tail::Tail(const Graph& graph, std::vector<ValueId> changed, ValueId wanted, at::Device device)
    : changed_(std::move(changed)), wanted_(wanted) {
  trivial_ = std::find(changed_.begin(), changed_.end(), wanted) != changed_.end();
  if (trivial_) return;
  std::set<ValueId> touched(changed_.begin(), changed_.end());
  const std::set<ValueId> given = touched;
  std::vector<ValueId> known = graph.inputs;
  known.insert(known.end(), changed_.begin(), changed_.end());
  const std::vector<bool> needed = executor::needed_nodes(graph, known, {&wanted, 1});
  std::set<ValueId> beside;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const model::Node& node = graph.nodes[n];
    bool depends = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return touched.count(id); });
    if (!needed[n] || !depends) continue;
    for (ValueId id : node.outputs)
      if (id != kAbsent && !given.count(id)) touched.insert(id);
  }
  // What is not touched and not made of constants alone has to come from the network as it is.
  std::vector<bool> constant(graph.values.size());
  for (const auto& [id, value] : graph.constants) constant[size_t(id)] = !given.count(id);
  for (const model::Node& node : graph.nodes) {
    bool fixed = !node.inputs.empty() || node.op == "Constant";
    for (ValueId id : node.inputs) fixed = fixed && (id == kAbsent || constant[size_t(id)]);
    for (ValueId id : node.outputs)
      if (id != kAbsent && fixed) constant[size_t(id)] = true;
  }
  if (!touched.count(wanted)) return;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const model::Node& node = graph.nodes[n];
    bool inside = needed[n] && std::any_of(node.outputs.begin(), node.outputs.end(),
                                           [&](ValueId id) { return touched.count(id) && !given.count(id); });
    if (!inside) continue;
    for (ValueId id : node.inputs)
      if (id != kAbsent && !touched.count(id) && !constant[size_t(id)]) beside.insert(id);
  }
  beside_.assign(beside.begin(), beside.end());
  executor::Request request;
  request.given = changed_;
  request.given.insert(request.given.end(), beside_.begin(), beside_.end());
  request.wanted = {wanted};
  request.device = device;
  run_ = std::make_unique<executor::Executor>(graph, request);
  if (device.is_cpu() && changed_.size() == 1 && beside_.empty()) dense_ = DenseChain::find(graph, changed_[0], wanted);
}

at::Tensor Tail::run(std::span<const at::Tensor> changed, std::span<const at::Tensor> beside) const {
  if (trivial_) return changed[size_t(std::find(changed_.begin(), changed_.end(), wanted_) - changed_.begin())];
  if (dense_ && dense_->suits(changed[0])) return dense_->run(changed[0]);
  std::vector<at::Tensor> given(changed.begin(), changed.end());
  given.insert(given.end(), beside.begin(), beside.end());
  return run_->run(given)[0];
}

}  // namespace netmend::whatif
