// Which values only open and close ways for others: behind a sigmoid, a softmax, or what else is bounded.
#include <set>

#include "explain/flow.h"

namespace netmend::explain {

std::vector<int> find_gates(const model::Graph& graph) {
  static const std::set<std::string_view> strong = {"Sigmoid", "HardSigmoid", "Softmax", "Hardmax", "Reciprocal"};
  static const std::set<std::string_view> weak = {"Tanh", "Erf", "Softsign", "Clip"};
  // Moved about, scaled and shifted by constants it is the same gate; a sum of gates too.
  static const std::set<std::string_view> keeps = {
      "Identity", "Reshape", "Flatten", "Squeeze",    "Unsqueeze", "Transpose", "Expand", "Cast",
      "Dropout",  "Slice",   "Split",   "Concat",     "Gather",    "Tile",      "Add",    "Sub",
      "Mul",      "Div",     "Where",   "ReduceMean", "ReduceSum", "Neg"};
  std::vector<int> gates(graph.values.size());
  for (const model::Node& node : graph.nodes) {
    int gate = strong.count(node.op) ? 2 : weak.count(node.op) ? 1 : 0;
    if (node.op == "Clip" && !(node.inputs.size() > 2 || node.attributes.count("max"))) gate = 0;  // a rectifier
    if (node.op == "Pow" && node.inputs.size() > 1)
      if (at::Tensor exponent = graph.constant(node.inputs[1]);
          exponent.defined() && exponent.numel() == 1 && exponent.item().toDouble() < 0)
        gate = 2;
    if (keeps.count(node.op)) {
      int weakest = 3;
      for (model::ValueId id : node.inputs)
        if (id != model::kAbsent && !graph.is_constant(id)) weakest = std::min(weakest, gates[size_t(id)]);
      gate = weakest == 3 ? 0 : weakest;
    }
    for (model::ValueId id : node.outputs)
      if (id != model::kAbsent) gates[size_t(id)] = gate;
  }
  return gates;
}

}  // namespace netmend::explain
