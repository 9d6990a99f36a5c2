#include "executor/optimise.h"

#include <ATen/ATen.h>

#include <unordered_set>

#include "model/guard.h"
#include "ops/op.h"

namespace netmend::executor {

using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;

namespace {

bool all_constant(const Graph& graph, const Node& node) {
  for (ValueId id : node.inputs)
    if (id != kAbsent && !graph.is_constant(id)) return false;
  return true;
}

void compute_now(Graph& graph, const Node& node) {
  std::vector<at::Tensor> inputs, outputs(node.outputs.size());
  for (ValueId id : node.inputs) inputs.push_back(graph.constant(id));
  ops::Call call(inputs, outputs);
  model::guarded([&] { return fmt::format("node {} ({})", node.name, node.op); },
                 [&] { ops::prepare(graph, node)(call); });
  for (size_t i = 0; i < outputs.size(); ++i)
    if (node.outputs[i] != kAbsent && outputs[i].defined())
      graph.constants[node.outputs[i]] = {outputs[i], graph.values[size_t(node.outputs[i])].type, {}, false};
}

}  // namespace

void fold_constants(Graph& graph, const Request& request) {
  std::unordered_set<ValueId> given(request.given.begin(), request.given.end());
  std::vector<bool> needed = needed_nodes(graph, request.given, request.wanted);
  std::vector<Node> left;
  std::unordered_map<ValueId, model::Constant> variables;  // a given constant must not be folded
  for (ValueId id : request.given)
    if (graph.is_constant(id)) variables[id] = graph.constants[id], graph.constants.erase(id);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!needed[n]) continue;
    bool makes_given = false;
    for (ValueId id : graph.nodes[n].outputs) makes_given = makes_given || given.count(id);
    if (!makes_given && ops::find(graph.nodes[n].domain, graph.nodes[n].op) && !graph.nodes[n].inputs.empty() &&
        all_constant(graph, graph.nodes[n]))
      compute_now(graph, graph.nodes[n]);
    else
      left.push_back(graph.nodes[n]);
  }
  graph.nodes = std::move(left);
  graph.constants.merge(variables);
}

void optimise(Graph& graph, const Request& request) { fold_constants(graph, request); }

}  // namespace netmend::executor
