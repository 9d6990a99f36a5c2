// Who reads a unit: from the value after its activation forward to the linear operators.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "edits/links.h"
#include "ops/op.h"

namespace netmend::edits {

using model::Graph;
using model::kAbsent;
using model::Layer;
using model::Node;
using model::ValueId;

namespace {

/// Acts on each unit by itself and leaves the axes where they are.
bool is_unitwise(const Node& node) {
  static const std::set<std::string_view> others = {
      "AveragePool",   "BatchNormalization", "Cast",   "Dropout", "GlobalAveragePool",
      "GlobalMaxPool", "Identity",           "LpPool", "MaxPool"};
  const ops::Op* op = ops::find(node.domain, node.op);
  return (op && op->kind == ops::Kind::kActivation) || others.count(node.op);
}

/// Where a value holds the unit's numbers.
struct Layout {
  enum Kind { kAxis, kBlocks, kStripes } kind = kAxis;
  int64_t axis = 1;   ///< of kAxis; negative from the end
  int64_t rank = -1;  ///< -1 when nothing tells
  bool is_last() const { return kind != kAxis || axis == -1 || (rank > 0 && axis == rank - 1); }
};

class Search {
 public:
  Search(const Graph& graph, const Layer& layer, int64_t unit)
      : links_(graph), layer_(layer), unit_(unit), outputs_(graph.outputs.begin(), graph.outputs.end()) {}

  std::vector<Reader> find() {
    const Node& node = links_.graph.nodes[size_t(layer_.node)];
    if (node.op == "LSTM" || node.op == "GRU" || node.op == "RNN")
      refuse("it is recurrent and reads itself: its output cannot be scaled by weights of the next layer alone");
    if (layer_.batch_axis != 0) refuse("its inputs do not count along the first axis");
    Layout layout{Layout::kAxis, layer_.unit_axis, -1};
    if (node.op == "Gemm") layout.rank = 2;
    at::Tensor weight = see(links_, layer_.weight_input).view;
    if (weight.defined() && (node.op == "Conv" || node.op == "ConvTranspose")) layout.rank = weight.dim();
    follow(layer_.post, layout);
    if (readers_.empty()) refuse("nothing reads it");
    return std::move(readers_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw InputError(fmt::format("the outgoing weights of {} cannot be changed: {}", model::unit_name(layer_, unit_),
                                 fmt::format(format, std::forward<Args>(args)...)),
                     "Change its own weights and bias instead.");
  }

  void follow(ValueId value, const Layout& layout) {
    if (++steps_ > 10000) refuse("too many operators read it");
    if (outputs_.count(value)) refuse("{} is an output of the model", links_.graph.values[size_t(value)].name);
    for (int user : links_.used_by[size_t(value)]) visit(links_.graph.nodes[size_t(user)], value, layout);
  }

  void visit(const Node& node, ValueId value, const Layout& layout) {
    if (node.inputs[0] != value || std::count(node.inputs.begin(), node.inputs.end(), value) != 1 ||
        node.outputs.empty() || node.outputs[0] == kAbsent)
      refuse("{} reads it, which is not a plain linear layer", node_text(node));
    if (node.op == "Conv" || node.op == "ConvTranspose") return read_conv(node, layout);
    if (node.op == "Gemm" || node.op == "MatMul") return read_product(node, layout);
    follow(node.outputs[0], passed(node, layout));
  }

  Layout passed(const Node& node, const Layout& layout) const {
    if (is_unitwise(node)) return layout;
    if (node.op == "Flatten" && integer(node, "axis", 1) == 1) return flat(node, layout);
    if (node.op == "Reshape" && to_matrix(node)) return flat(node, layout);
    if (node.op == "Transpose" && layout.kind == Layout::kAxis) return turned(node, layout);
    if ((node.op == "Squeeze" || node.op == "ReduceMean") && layout.kind == Layout::kAxis && layout.rank > 0)
      return reduced(node, layout);
    refuse("{} reads it, which is not a plain linear layer", node_text(node));
  }

  bool to_matrix(const Node& node) const {
    auto shape = integers(links_.graph, node, "shape", 1);
    return shape && shape->size() == 2;
  }

  /// Features are counted axis by axis: units first leaves each unit a block, units last a stripe.
  Layout flat(const Node& node, const Layout& layout) const {
    if (layout.kind != Layout::kAxis) return layout;
    if (layout.is_last()) return {Layout::kStripes, -1, 2};
    if (layout.axis == 1) return {Layout::kBlocks, -1, 2};
    refuse("{} mixes it with other units", node_text(node));
  }

  Layout turned(const Node& node, const Layout& layout) const {
    auto hit = node.attributes.find("perm");
    const auto* perm = hit == node.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&hit->second);
    if (!perm || perm->empty() || (*perm)[0] != 0) refuse("{} moves the axis of the inputs", node_text(node));
    int64_t rank = int64_t(perm->size()), from = layout.axis < 0 ? layout.axis + rank : layout.axis;
    return {Layout::kAxis, std::find(perm->begin(), perm->end(), from) - perm->begin(), rank};
  }

  Layout reduced(const Node& node, const Layout& layout) const {
    auto axes = integers(links_.graph, node, "axes", 1);
    int64_t unit_axis = layout.axis < 0 ? layout.axis + layout.rank : layout.axis, gone = 0;
    for (int64_t axis : axes.value_or(std::vector<int64_t>{0})) {
      if ((axis < 0 ? axis + layout.rank : axis) <= unit_axis) refuse("{} mixes it with others", node_text(node));
      ++gone;
    }
    bool keeps = node.op == "ReduceMean" && integer(node, "keepdims", 1);
    return {Layout::kAxis, unit_axis, layout.rank - (keeps ? 0 : gone)};
  }

  Seen weight_of(const Node& node) const {
    Seen seen = see(links_, node.inputs.size() > 1 ? node.inputs[1] : kAbsent);
    if (!seen.view.defined()) refuse("{} reads it, and its weights are not a plain parameter", node_text(node));
    if (!seen.refusal.empty()) refuse("{}", seen.refusal);
    return seen;
  }

  void add(const Seen& seen, const at::Tensor& part) {
    std::vector<int64_t> positions = positions_of(seen, links_.graph, part);
    for (Reader& known : readers_)
      if (known.parameter == seen.root) {
        known.positions.insert(known.positions.end(), positions.begin(), positions.end());
        std::sort(known.positions.begin(), known.positions.end());
        return;
      }
    readers_.push_back({seen.root, std::move(positions)});
  }

  void read_conv(const Node& node, const Layout& layout) {
    if (layout.kind != Layout::kAxis || layout.axis != 1) refuse("{} does not read it as a channel", node_text(node));
    Seen seen = weight_of(node);
    if (seen.view.dim() < 3) refuse("the weights of {} have no axis of channels", node_text(node));
    if (node.op == "ConvTranspose") {
      require_size(node, seen.view.size(0), layer_.units);
      return add(seen, seen.view.select(0, unit_));
    }
    int64_t groups = integer(node, "group", 1), width = seen.view.size(1), filters = seen.view.size(0);
    if (groups < 1 || filters % groups != 0) refuse("{} has {} groups", node_text(node), groups);
    require_size(node, width * groups, layer_.units);
    at::Tensor group = seen.view.narrow(0, unit_ / width * (filters / groups), filters / groups);
    add(seen, group.select(1, unit_ % width));
  }

  void require_size(const Node& node, int64_t features, int64_t units) const {
    if (features != units)
      refuse("{} reads {} features, {} has {} units", node_text(node), features, layer_.name, units);
  }

  void read_product(const Node& node, const Layout& layout) {
    Seen seen = weight_of(node);
    bool turned = node.op == "Gemm" && integer(node, "transB", 0);
    if (!layout.is_last() || seen.view.dim() != 2 || (node.op == "Gemm" && integer(node, "transA", 0)))
      refuse("{} does not read it as a feature", node_text(node));
    int64_t axis = turned ? 1 : 0, features = seen.view.size(axis), units = layer_.units;
    if (layout.kind == Layout::kAxis) require_size(node, features, units);
    if (features % units != 0)
      refuse("{} reads {} features, {} has {} units", node_text(node), features, layer_.name, units);
    int64_t each = features / units;
    for (int64_t i = 0; i < each; ++i)
      add(seen, seen.view.select(axis, layout.kind == Layout::kBlocks ? unit_ * each + i : unit_ + i * units));
  }

  Links links_;
  const Layer& layer_;
  int64_t unit_;
  std::set<ValueId> outputs_;
  std::vector<Reader> readers_;
  int steps_ = 0;
};

}  // namespace

std::vector<Reader> find_readers(const Graph& graph, const Layer& layer, int64_t unit) {
  return Search(graph, layer, unit).find();
}

}  // namespace netmend::edits
