#include "executor/layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "executor/executor.h"
#include "executor/optimise.h"
#include "ops/op.h"

namespace netmend::executor {

using model::Graph;
using model::kAbsent;
using model::Layer;
using model::Node;
using model::ValueId;

namespace {

const std::set<std::string_view> kCarriers = {"Identity",  "Cast",    "Transpose", "Reshape",
                                              "Unsqueeze", "Squeeze", "Flatten",   "DequantizeLinear"};
const std::set<std::string_view> kElementwise = {"Mul", "Add",  "Sub",     "Div",         "Pow",  "Erf",
                                                 "Exp", "Tanh", "Sigmoid", "HardSigmoid", "Clip", "Softplus"};

/// Follows a layer from its linear operator to its activation.
class Follower {
 public:
  Follower(const Graph& graph, const Graph& folded)
      : graph_(graph),
        folded_(folded),
        made_by_(model::producers(graph)),
        used_by_(model::consumers(folded)),
        outputs_(folded.outputs.begin(), folded.outputs.end()) {}

  Layer follow(const Node& linear, const ops::Units& units) {
    Layer layer;
    layer.op = linear.op;
    layer.units = units.count;
    layer.unit_axis = units.unit_axis;
    layer.batch_axis = units.batch_axis;
    layer.weight_axis = units.weight_axis;
    layer.weight_input = linear.inputs[size_t(units.weight_slot)];
    layer.weight = root_constant(graph_, made_by_, layer.weight_input);
    count(layer, layer.weight_input);
    for (size_t slot = 1; slot < linear.inputs.size(); ++slot)  // biases; a recurrent layer's second matrix
      if (int(slot) != units.weight_slot && is_real(linear.inputs[slot])) count(layer, linear.inputs[slot]);
    if (units.bias_slot >= 0 && size_t(units.bias_slot) < linear.inputs.size())
      set_bias(layer, linear.inputs[size_t(units.bias_slot)]);
    layer.pre = layer.post = linear.outputs[0];
    if (layer.pre != kAbsent) walk(layer);
    return layer;
  }

 private:
  bool is_real(ValueId id) const {
    at::Tensor value = folded_.constant(id);
    return value.defined() && value.is_floating_point();
  }

  void set_bias(Layer& layer, ValueId id) const {
    layer.bias_input = id;
    layer.bias = root_constant(graph_, made_by_, id);
  }

  void count(Layer& layer, ValueId id) const {
    at::Tensor value = folded_.constant(id);
    if (value.defined()) layer.parameters += value.numel();
  }

  const Node* only_user(ValueId value) const {
    const std::vector<int>& users = used_by_[size_t(value)];
    return users.size() == 1 && !outputs_.count(value) ? &folded_.nodes[size_t(users[0])] : nullptr;
  }

  void walk(Layer& layer) {
    ValueId at = layer.pre;
    int unit_axis = layer.unit_axis, batch_axis = layer.batch_axis;
    auto settle = [&](ValueId value) {
      layer.pre = layer.post = value, layer.unit_axis = unit_axis, layer.batch_axis = batch_axis;
    };
    while (const Node* next = only_user(at)) {
      const ops::Op* op = ops::find(next->domain, next->op);
      if (!op || next->outputs.empty() || next->outputs[0] == kAbsent) return;
      ValueId other = next->inputs.size() > 1 ? next->inputs[next->inputs[0] == at ? 1 : 0] : kAbsent;
      if (op->kind == ops::Kind::kActivation) {
        settle(at);
        layer.activation = next->op;
        layer.post = next->outputs[0];
        return;
      }
      if (op->kind == ops::Kind::kBias && is_real(other) && folded_.constant(other).numel() == layer.units) {
        if (layer.bias == kAbsent) set_bias(layer, other);
        count(layer, other);
      } else if (op->kind == ops::Kind::kNormalise) {
        if (next->inputs.size() > 2) count(layer, next->inputs[1]), count(layer, next->inputs[2]);
      } else if (op->kind == ops::Kind::kReorder && next->attributes.count("perm")) {
        if (!reorder(*next, unit_axis, batch_axis)) return;
        at = next->outputs[0];
        continue;  // counts only when something of the layer follows
      } else {
        return;
      }
      at = next->outputs[0];
      settle(at);
    }
    compound_activation(layer, at);
  }

  static bool reorder(const Node& node, int& unit_axis, int& batch_axis) {
    const auto* perm = std::get_if<std::vector<int64_t>>(&node.attributes.at("perm"));
    if (!perm) return false;
    auto moved = [&](int axis) {
      int64_t from = axis < 0 ? axis + int64_t(perm->size()) : axis;
      return int(std::find(perm->begin(), perm->end(), from) - perm->begin());
    };
    unit_axis = moved(unit_axis), batch_axis = moved(batch_axis);
    return unit_axis < int(perm->size()) && batch_axis < int(perm->size());
  }

  /// Silu, Gelu and Mish as exporters spell them: a few elementwise nodes that start and end in one value.
  void compound_activation(Layer& layer, ValueId start) {
    if (used_by_[size_t(start)].empty() || layer.post != start || outputs_.count(start)) return;
    std::set<ValueId> inside = {start};
    std::set<int> members;
    std::set<std::string_view> kinds;
    for (int n = used_by_[size_t(start)].front(); n < int(folded_.nodes.size()) && members.size() < 12; ++n) {
      const Node& node = folded_.nodes[size_t(n)];
      bool uses = false, closed = kElementwise.count(node.op) > 0;
      for (ValueId id : node.inputs) {
        if (id == kAbsent || folded_.is_constant(id)) continue;
        uses = uses || inside.count(id);
        closed = closed && inside.count(id);
      }
      if (!uses) continue;
      if (!closed) return;
      members.insert(n);
      kinds.insert(node.op);
      inside.insert(node.outputs[0]);
      if (members.size() > 1 && all_end_in(inside, members, node.outputs[0])) {
        layer.post = scaled_end(node.outputs[0]);
        layer.activation = kinds.count("Erf")                                  ? "Gelu"
                           : kinds.count("Softplus")                           ? "Mish"
                           : kinds.count("Sigmoid")                            ? "Silu"
                           : kinds.count("HardSigmoid") || kinds.count("Clip") ? "HardSwish"
                                                                               : "Gelu";
        return;
      }
    }
  }

  /// Some spell the half of a gelu as a last product with a number.
  ValueId scaled_end(ValueId end) const {
    const Node* next = only_user(end);
    if (!next || next->op != "Mul" || next->inputs.size() != 2) return end;
    at::Tensor factor = folded_.constant(next->inputs[next->inputs[0] == end ? 1 : 0]);
    return factor.defined() && factor.numel() == 1 ? next->outputs[0] : end;
  }

  bool all_end_in(const std::set<ValueId>& inside, const std::set<int>& members, ValueId end) const {
    for (ValueId id : inside) {
      if (id == end) continue;
      if (outputs_.count(id)) return false;
      for (int user : used_by_[size_t(id)])
        if (!members.count(user)) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Graph& folded_;
  std::vector<int> made_by_;
  std::vector<std::vector<int>> used_by_;
  std::set<ValueId> outputs_;
};

/// The parts of a node's path that tell something: without the exporter's wrappers and without the operator at the end.
std::vector<std::string> path_parts(const Node& node) {
  std::vector<std::string> parts;
  std::string name = node.name;
  std::replace(name.begin(), name.end(), ':', '/');
  for (std::string& part : split(name, '/')) {
    if (part.empty() || part.starts_with("StatefulPartitionedCall") || part == "PartitionedCall") continue;
    // PyTorch repeats the outer name inside the inner one: layer1/layer1.0
    if (!parts.empty() && part.starts_with(parts.back() + "."))
      parts.back() = part;
    else
      parts.push_back(part);
  }
  auto is_operator = [&](const std::string& part) {
    std::string plain = part.substr(0, part.find('_'));
    return plain == node.op || part == "Conv2D" || part == "BiasAdd" || part == "Tensordot" || part == "convolution";
  };
  while (parts.size() > 1 && is_operator(parts.back())) parts.pop_back();
  if (parts.size() == 1 && (is_operator(parts[0]) || parts[0].find_first_not_of("0123456789") == std::string::npos))
    parts.clear();
  return parts;
}

std::string kind_name(const std::string& op) {
  if (op == "Conv") return "conv";
  if (op == "ConvTranspose") return "deconv";
  if (op == "Gemm" || op == "MatMul") return "dense";
  return lower(op);
}

/// Takes off leading parts that all paths share, or all but a few that exporters made themselves.
void strip_common(std::vector<std::vector<std::string>>& paths) {
  while (true) {
    std::map<std::string, size_t> counts;
    for (const auto& path : paths)
      if (path.size() > 1) ++counts[path[0]];
    size_t most = 0;
    std::string part;
    for (const auto& [name, count] : counts)
      if (count > most) part = name, most = count;
    size_t strangers = paths.size() < 4 ? 0 : std::max<size_t>(1, paths.size() / 10);
    if (paths.size() < 2 || most + strangers < paths.size() || most == 0) return;
    for (auto& path : paths)
      if (path.size() > 1 && path[0] == part) path.erase(path.begin());
  }
}

/// Names from node paths where the exporter wrote some, else by kind and number: conv1, dense2. Unique.
void name_layers(std::vector<Layer>& layers, const Graph& graph) {
  std::vector<std::vector<std::string>> paths;
  for (const Layer& layer : layers) paths.push_back(path_parts(graph.nodes[size_t(layer.node)]));
  strip_common(paths);
  std::map<std::string, int> numbers;
  std::set<std::string> taken;
  for (size_t i = 0; i < layers.size(); ++i) {
    std::string name;
    for (size_t p = 0; p < paths[i].size(); ++p) name += (name.empty() ? "" : ".") + paths[i][p];
    if (name.empty()) name = fmt::format("{}{}", kind_name(layers[i].op), ++numbers[kind_name(layers[i].op)]);
    std::string unique = name;
    for (int copy = 2; !taken.insert(unique).second; ++copy) unique = fmt::format("{}_{}", name, copy);
    layers[i].name = unique;
  }
}

Graph folded_copy(const Graph& graph) {
  Graph folded = graph;
  Request all;
  all.given = graph.inputs;
  all.wanted = graph.outputs;
  fold_constants(folded, all);
  return folded;
}

}  // namespace

ValueId root_constant(const Graph& graph, std::span<const int> producers, ValueId id) {
  while (id != kAbsent && !graph.is_constant(id)) {
    int maker = producers[size_t(id)];
    if (maker < 0 || !kCarriers.count(graph.nodes[size_t(maker)].op)) return kAbsent;
    id = graph.nodes[size_t(maker)].inputs.empty() ? kAbsent : graph.nodes[size_t(maker)].inputs[0];
  }
  return id;
}

std::vector<Layer> find_layers(const Graph& graph) {
  Graph folded = folded_copy(graph);
  std::map<std::string, int> index;
  for (size_t n = 0; n < graph.nodes.size(); ++n) index[graph.nodes[n].name] = int(n);
  Follower follower(graph, folded);
  std::vector<Layer> layers;
  for (const Node& node : folded.nodes) {
    const ops::Op* op = ops::find(node.domain, node.op);
    if (!op || op->kind != ops::Kind::kLinear || !op->units || node.outputs.empty()) continue;
    std::optional<ops::Units> units = op->units(ops::NodeView(folded, node));
    if (!units || units->count <= 0) continue;
    layers.push_back(follower.follow(node, *units));
    layers.back().node = index.at(node.name);
  }
  name_layers(layers, graph);
  return layers;
}

std::vector<ValueId> find_parameters(const Graph& graph) {
  static const std::set<std::string_view> weighted = {"Conv",
                                                      "ConvTranspose",
                                                      "Gemm",
                                                      "MatMul",
                                                      "RNN",
                                                      "LSTM",
                                                      "GRU",
                                                      "Einsum",
                                                      "PRelu",
                                                      "LayerNormalization",
                                                      "GroupNormalization",
                                                      "InstanceNormalization",
                                                      "BatchNormalization",
                                                      "Gather"};
  std::vector<int> made_by = model::producers(graph);
  std::vector<bool> after_weights(graph.values.size());
  std::vector<ValueId> found;
  std::set<ValueId> seen;
  for (const Node& node : graph.nodes) {
    bool carries = std::any_of(node.inputs.begin(), node.inputs.end(),
                               [&](ValueId id) { return id != kAbsent && after_weights[size_t(id)]; });
    bool holds = weighted.count(node.op) > 0;
    bool offsets = carries && (node.op == "Add" || node.op == "Mul" || node.op == "Sub" || node.op == "Div");
    for (size_t slot = 0; slot < node.inputs.size() && (holds || offsets); ++slot) {
      if (node.op == "BatchNormalization" && slot >= 3) continue;
      if (node.op == "Gather" && slot > 0) continue;
      ValueId id = root_constant(graph, made_by, node.inputs[slot]);
      if (id == kAbsent || (offsets && !holds && graph.constant(id).numel() < 2)) continue;
      bool quantised = graph.is_constant(id) && at::isIntegralType(graph.constant(id).scalar_type(), true);
      if ((graph.constant(id).is_floating_point() || (quantised && node.op != "Gather" && id != node.inputs[slot])) &&
          seen.insert(id).second)
        found.push_back(id);
    }
    for (ValueId id : node.outputs)
      if (id != kAbsent) after_weights[size_t(id)] = carries || holds;
  }
  return found;
}

std::vector<ValueId> find_starts(const Graph& graph) {
  static const std::set<std::string_view> keeps_ids = {"Identity",  "Reshape",   "Flatten", "Squeeze",
                                                       "Unsqueeze", "Transpose", "Cast",    "Slice"};
  std::vector<ValueId> starts;
  std::vector<bool> ids(graph.values.size());
  for (ValueId id : graph.inputs)
    if (at::isFloatingType(model::carrier(graph.values[size_t(id)].type)))
      starts.push_back(id);
    else
      ids[size_t(id)] = true;
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty() || node.outputs.empty() || node.outputs[0] == kAbsent) continue;
    ValueId looked_up = node.op == "Gather" && node.inputs.size() == 2 ? node.inputs[1] : kAbsent;
    if (looked_up != kAbsent && ids[size_t(looked_up)] && graph.is_constant(node.inputs[0]) &&
        graph.constant(node.inputs[0]).is_floating_point())
      starts.push_back(node.outputs[0]);
    else if (node.inputs[0] != kAbsent && keeps_ids.count(node.op))
      ids[size_t(node.outputs[0])] = ids[size_t(node.inputs[0])];
  }
  return starts;
}

Head find_head(const Graph& graph, ValueId output) {
  std::vector<int> made_by = model::producers(graph);
  Head head{output, output, OutputKind::kLogits};
  ValueId at = output;
  while (made_by[size_t(at)] >= 0) {
    const Node& node = graph.nodes[size_t(made_by[size_t(at)])];
    if (node.op == "Identity" || node.op == "Cast") {
      at = node.inputs[0];
      continue;
    }
    if (node.op != "Softmax" && node.op != "LogSoftmax" && node.op != "Sigmoid") break;
    head.logits = node.inputs[0];
    head.output_kind = node.op == "Softmax"   ? OutputKind::kProbabilities
                       : node.op == "Sigmoid" ? OutputKind::kSigmoid
                                              : OutputKind::kLogProbabilities;
    break;
  }
  return head;
}

}  // namespace netmend::executor
