#include "edits/places.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "edits/links.h"

namespace netmend::edits {

using model::Graph;
using model::kAbsent;
using model::Layer;
using model::Node;
using model::ValueId;

using Integers = std::vector<int64_t>;

std::string node_text(const Node& node) { return fmt::format("{} {}", node.op, node.name); }

std::optional<Integers> integers(const Graph& graph, const Node& node, const char* attribute, size_t slot) {
  auto hit = node.attributes.find(attribute);
  if (hit != node.attributes.end())
    if (const auto* list = std::get_if<Integers>(&hit->second)) return *list;
  at::Tensor value = slot < node.inputs.size() ? graph.constant(node.inputs[slot]) : at::Tensor();
  if (!value.defined() || value.scalar_type() != at::kLong) return std::nullopt;
  at::Tensor plain = value.contiguous();
  return Integers(plain.data_ptr<int64_t>(), plain.data_ptr<int64_t>() + plain.numel());
}

int64_t integer(const Node& node, const char* attribute, int64_t otherwise) {
  auto hit = node.attributes.find(attribute);
  const auto* value = hit == node.attributes.end() ? nullptr : std::get_if<int64_t>(&hit->second);
  return value ? *value : otherwise;
}

namespace {

at::Tensor reshaped(const Graph& graph, const Node& node, const at::Tensor& in) {
  std::optional<Integers> shape = integers(graph, node, "shape", 1);
  if (!shape) return {};
  for (size_t i = 0; i < shape->size(); ++i)
    if ((*shape)[i] == 0 && !integer(node, "allowzero", 0) && int64_t(i) < in.dim()) (*shape)[i] = in.size(int64_t(i));
  return in.view(*shape);
}

at::Tensor squeezed(const Graph& graph, const Node& node, const at::Tensor& in) {
  std::optional<Integers> axes = integers(graph, node, "axes", 1);
  if (!axes) return node.inputs.size() > 1 ? at::Tensor() : in.squeeze();
  for (int64_t& axis : *axes) axis = at::maybe_wrap_dim(axis, in.dim());
  std::sort(axes->rbegin(), axes->rend());
  at::Tensor out = in;
  for (int64_t axis : *axes) out = out.squeeze(axis);
  return out;
}

at::Tensor unsqueezed(const Graph& graph, const Node& node, const at::Tensor& in) {
  std::optional<Integers> axes = integers(graph, node, "axes", 1);
  if (!axes) return {};
  for (int64_t& axis : *axes) axis = at::maybe_wrap_dim(axis, in.dim() + int64_t(axes->size()));
  std::sort(axes->begin(), axes->end());
  at::Tensor out = in;
  for (int64_t axis : *axes) out = out.unsqueeze(axis);
  return out;
}

at::Tensor transposed(const Node& node, const at::Tensor& in) {
  auto hit = node.attributes.find("perm");
  if (hit != node.attributes.end())
    if (const auto* perm = std::get_if<Integers>(&hit->second)) return in.permute(*perm);
  Integers reversed;
  for (int64_t axis = in.dim() - 1; axis >= 0; --axis) reversed.push_back(axis);
  return in.permute(reversed);
}

at::Tensor flattened(const Node& node, const at::Tensor& in) {
  int64_t axis = integer(node, "axis", 1), rows = 1;
  if (axis < 0) axis += in.dim();
  for (int64_t a = 0; a < std::min(axis, in.dim()); ++a) rows *= in.size(a);
  return in.view({rows, rows ? in.numel() / rows : 0});
}

/// What the node makes of a view, as a view of the same memory; undefined when there is none.
at::Tensor carried(const Graph& graph, const Node& node, const at::Tensor& in) {
  try {
    if (node.op == "Identity" || node.op == "Cast" || node.op == "DequantizeLinear") return in;
    if (node.op == "Transpose") return transposed(node, in);
    if (node.op == "Reshape") return reshaped(graph, node, in);
    if (node.op == "Squeeze") return squeezed(graph, node, in);
    if (node.op == "Unsqueeze") return unsqueezed(graph, node, in);
    if (node.op == "Flatten") return flattened(node, in);
  } catch (const c10::Error&) {  // a transposed matrix that is reshaped has no view; hostile attributes fit nothing
  }
  return {};
}

void refuse(Seen& seen, const std::string& reason) {
  if (seen.refusal.empty()) seen.refusal = reason;
}

/// Several readers would all change: no unit owns such numbers.
void refuse_shared(Seen& seen, const Graph& graph, const std::vector<int>& users) {
  if (users.size() > 1)
    refuse(seen, fmt::format("{} is read by {} and {}", graph.values[size_t(seen.root)].name,
                             node_text(graph.nodes[size_t(users[0])]), node_text(graph.nodes[size_t(users[1])])));
}

bool is_carrier(const Node& node) {
  static const char* const carriers[] = {"Identity",  "Cast",    "Transpose", "Reshape",
                                         "Unsqueeze", "Squeeze", "Flatten",   "DequantizeLinear"};
  return !node.inputs.empty() &&
         std::any_of(std::begin(carriers), std::end(carriers), [&](const char* op) { return node.op == op; });
}

Seen see_constant(const Graph& graph, ValueId id) {
  const model::Constant& constant = graph.constants.at(id);
  Seen seen{id, constant.value.contiguous(), ""};
  if (!constant.value.is_floating_point())
    refuse(seen, fmt::format("{} is stored as {}", graph.values[size_t(id)].name, element_name(constant.stored)));
  return seen;
}

Seen see_carried(const Links& links, const Node& node, int depth) {
  Seen seen = see(links, node.inputs[0], depth + 1);
  if (seen.root == kAbsent) return seen;
  const std::string& name = links.graph.values[size_t(seen.root)].name;
  if (node.op == "DequantizeLinear") seen.refusal = fmt::format("{} is quantised ({})", name, node_text(node));
  if (seen.view.defined()) seen.view = carried(links.graph, node, seen.view);
  if (!seen.view.defined()) refuse(seen, fmt::format("{} is rearranged by {}", name, node_text(node)));
  return seen;
}

}  // namespace

Seen see(const Links& links, ValueId id, int depth) {
  if (id == kAbsent || depth > 64) return {};
  Seen seen;
  if (links.graph.is_constant(id)) {
    seen = see_constant(links.graph, id);
  } else {
    int maker = links.made_by[size_t(id)];
    if (maker < 0 || !is_carrier(links.graph.nodes[size_t(maker)])) return {};
    seen = see_carried(links, links.graph.nodes[size_t(maker)], depth);
    if (seen.root == kAbsent) return seen;
  }
  refuse_shared(seen, links.graph, links.used_by[size_t(id)]);
  return seen;
}

Seen see(const Graph& graph, ValueId id) { return see(Links(graph), id); }

std::vector<int64_t> positions_of(const Seen& seen, const Graph& graph, const at::Tensor& part) {
  at::Tensor root = graph.constant(seen.root);
  int64_t start = root.is_contiguous() ? root.storage_offset() : 0;  // a contiguous copy begins at 0
  std::vector<int64_t> at = {part.storage_offset() - start};
  for (int64_t axis = 0; axis < part.dim(); ++axis) {
    std::vector<int64_t> more;
    more.reserve(at.size() * size_t(part.size(axis)));
    for (int64_t position : at)
      for (int64_t i = 0; i < part.size(axis); ++i) more.push_back(position + i * part.stride(axis));
    at = std::move(more);
  }
  std::sort(at.begin(), at.end());
  return at;
}

std::vector<int64_t> Part::positions(const Graph& graph, int64_t unit) const {
  if (!hidden_) return positions_of(seen_, graph, seen_.view.select(axis_, unit));
  std::vector<int64_t> all;
  at::Tensor direction = seen_.view.select(0, unit / hidden_);
  for (int64_t row = unit % hidden_; row < direction.size(0); row += hidden_) {
    std::vector<int64_t> some = positions_of(seen_, graph, direction.select(0, row));
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Finds the parts of one layer.
class PartFinder {
 public:
  PartFinder(const Graph& graph, const Layer& layer)
      : graph_(graph), layer_(layer), links_(graph), node_(graph.nodes[size_t(layer.node)]) {}

  Parts find() {
    bool recurrent = node_.op == "LSTM" || node_.op == "GRU" || node_.op == "RNN";
    if (recurrent)
      find_gates();
    else
      find_plain();
    find_norms();
    return std::move(parts_);
  }

 private:
  std::string value_name(ValueId id) const { return graph_.values[size_t(id)].name; }

  /// What stops operations when a value is no constant in another form.
  std::string computed(ValueId id) const {
    int maker = links_.made_by[size_t(id)];
    return maker < 0 ? fmt::format("{} is an input of the model", value_name(id))
                     : fmt::format("it is computed by {}", node_text(graph_.nodes[size_t(maker)]));
  }

  void add(Role role, Seen seen, int64_t axis, int64_t hidden = 0) {
    Part part;
    part.role = role, part.parameter = seen.root, part.refusal = seen.refusal;
    part.seen_ = std::move(seen), part.axis_ = axis, part.hidden_ = hidden;
    for (const Part& known : parts_.list)
      if (known.parameter == part.parameter) return;
    parts_.list.push_back(std::move(part));
  }

  void find_plain() {
    Seen weight = see(links_, layer_.weight_input);
    if (weight.root == kAbsent)
      parts_.no_weight = computed(layer_.weight_input);
    else if (!weight.view.defined())
      parts_.no_weight = weight.refusal;
    else
      add(Role::kWeight, weight, layer_.weight_axis);
    if (layer_.bias_input == kAbsent)
      parts_.no_bias = "it has none";
    else if (!add_by_size(Role::kBias, layer_.bias_input))
      parts_.no_bias = fmt::format("{} does not hold one number per unit", value_name(layer_.bias_input));
  }

  /// A parameter with an axis of one number per unit; the last such axis, as operators broadcast.
  bool add_by_size(Role role, ValueId id) {
    Seen seen = see(links_, id);
    if (seen.root == kAbsent || !seen.view.defined()) return false;
    if (seen.view.dim() == 0) seen.view = seen.view.unsqueeze(0);
    for (int64_t axis = seen.view.dim() - 1; axis >= 0; --axis)
      if (seen.view.size(axis) == layer_.units) return add(role, seen, axis), true;
    return false;
  }

  static bool has_gates(const at::Tensor& view, const at::Tensor& recurrent) {
    return view.dim() >= 2 && view.size(0) == recurrent.size(0) && view.size(1) % recurrent.size(2) == 0;
  }

  /// W, R and P are weights, B holds the biases of both; rows are gates × hidden features within a direction.
  void find_gates() {
    Seen recurrent = see(links_, node_.inputs[2]);
    if (!recurrent.view.defined() || recurrent.view.dim() != 3) {
      parts_.no_weight = parts_.no_bias = "its recurrent weights are computed";
      return;
    }
    int64_t hidden = recurrent.view.size(2);
    for (size_t slot : {size_t(1), size_t(2), size_t(7), size_t(3)}) {
      ValueId id = slot < node_.inputs.size() ? node_.inputs[slot] : kAbsent;
      Seen seen = see(links_, id);
      if (id != kAbsent && !seen.view.defined())
        (slot == 3 ? parts_.no_bias : parts_.no_weight) = computed(id);
      else if (id != kAbsent && !has_gates(seen.view, recurrent.view))
        (slot == 3 ? parts_.no_bias : parts_.no_weight) =
            fmt::format("{} has sizes {}, which do not fit {} hidden features", value_name(id),
                        shape_text(seen.view.sizes()), hidden);
      else if (id != kAbsent)
        add(slot == 3 ? Role::kBias : Role::kWeight, seen, 0, hidden);
      else if (slot == 3)
        parts_.no_bias = "it has none";
    }
  }

  /// Back from the value before the activation to the operator: batch norm, further offsets and scales.
  void find_norms() {
    ValueId at = layer_.pre;
    for (size_t guard = 0; at != kAbsent && guard < graph_.nodes.size(); ++guard) {
      int maker = links_.made_by[size_t(at)];
      if (maker < 0 || maker == layer_.node) return;
      ValueId before = kAbsent;
      for (ValueId id : graph_.nodes[size_t(maker)].inputs) {
        if (id == kAbsent) continue;
        if (see(links_, id).root != kAbsent)
          add_by_size(Role::kNorm, id);
        else if (before == kAbsent)
          before = id;
      }
      at = before;
    }
  }

  const Graph& graph_;
  const Layer& layer_;
  Links links_;
  const Node& node_;
  Parts parts_;
};

Parts find_parts(const Graph& graph, const Layer& layer) { return PartFinder(graph, layer).find(); }

}  // namespace netmend::edits
