#include "training/parameters.h"

#include <ATen/ATen.h>

#include <set>

#include "base/error.h"
#include "executor/executor.h"
#include "executor/layers.h"

namespace netmend::training {
namespace {

using model::Graph;
using model::ValueId;

/// Constants that the wanted value is made of.
std::set<ValueId> used_constants(const Graph& graph, ValueId wanted) {
  std::vector<bool> needed = executor::needed_nodes(graph, graph.inputs, std::span(&wanted, 1));
  std::set<ValueId> used;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (needed[n]) used.insert(graph.nodes[n].inputs.begin(), graph.nodes[n].inputs.end());
  return used;
}

void require_trainable(const Graph& graph, ValueId id) {
  const model::Constant& constant = graph.constants.at(id);
  const std::string& name = graph.values[size_t(id)].name;
  if (!constant.value.is_floating_point())
    throw Unsupported(fmt::format("{} is stored as {}: quantised weights cannot be trained", name,
                                  model::element_name(constant.stored)),
                      "Train the float model and quantise it afterwards.");
  if (constant.value.scalar_type() != at::kFloat)
    throw Unsupported(fmt::format("{} is {}: only float32 and half-precision weights can be trained", name,
                                  model::element_name(constant.stored)),
                      "Export the model in float32.");
}

std::vector<ValueId> find_statistics(const Graph& graph, const std::set<ValueId>& used) {
  std::vector<ValueId> found;
  std::set<ValueId> seen;
  for (const model::Node& node : graph.nodes)
    for (size_t slot = 3; node.op == "BatchNormalization" && slot < 5 && slot < node.inputs.size(); ++slot) {
      ValueId id = node.inputs[slot];
      if (graph.is_constant(id) && used.count(id) && seen.insert(id).second) found.push_back(id);
    }
  return found;
}

}  // namespace

Parameters::Parameters(const Graph& graph, ValueId wanted, at::Device device) {
  std::set<ValueId> used = used_constants(graph, wanted);
  int64_t total = 0;
  for (ValueId id : executor::find_parameters(graph)) {
    if (!used.count(id)) continue;
    require_trainable(graph, id);
    at::Tensor value = graph.constant(id);
    slots_.push_back({id, total, value.numel(), value.sizes().vec()});
    total += value.numel();
  }
  if (total == 0)
    fail("the model has no weights that {} depends on: there is nothing to train", graph.values[size_t(wanted)].name);
  values_ = at::empty({total}, at::kFloat);
  for (const Slot& slot : slots_) values_.narrow(0, slot.offset, slot.count).copy_(graph.constant(slot.id).flatten());
  values_ = values_.to(device);
  for (ValueId id : find_statistics(graph, used)) {
    require_trainable(graph, id);
    statistics_ids_.push_back(id);
    statistics_.push_back(graph.constant(id).to(at::kFloat).clone().to(device));
  }
}

at::Tensor Parameters::leaf(size_t at) const {
  const Slot& slot = slots_[at];
  return values_.narrow(0, slot.offset, slot.count).view(slot.shape).detach().requires_grad_(true);
}

void Parameters::write_to(Graph& graph) const {
  const at::Tensor here = values_.to(at::kCPU);
  for (const Slot& slot : slots_)
    graph.replace(slot.id, here.narrow(0, slot.offset, slot.count).view(slot.shape).clone());
  for (size_t i = 0; i < statistics_.size(); ++i)
    graph.replace(statistics_ids_[i], statistics_[i].to(at::kCPU).clone());
}

}  // namespace netmend::training
