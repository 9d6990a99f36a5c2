#include "whatif/shortcut.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "edits/places.h"

namespace netmend::whatif {

using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;

at::Tensor Reader::share(const at::Tensor& delta, std::span<const int64_t> units) const {
  at::Tensor which = at::tensor(at::ArrayRef<int64_t>(units.data(), units.size()), at::kLong);
  if (kernels_.defined()) {
    at::Tensor weight = kernels_.index_select(1, which), out;
    const at::Tensor inputs[] = {delta, weight};
    ops::Call call(inputs, {&out, 1});
    convolve_(call);
    return out;
  }
  at::Tensor flat = delta.flatten(1);  // inputs × (units · positions)
  at::Tensor weight = rows_.defined() ? rows_.index_select(0, which) : blocks_.index_select(0, which).flatten(0, 1);
  return at::mm(flat, weight);
}

namespace {

/// Operators that act on each unit by itself, whatever number of them stand along axis 1.
const std::set<std::string_view> kUnitwise = {
    "Relu",           "LeakyRelu",   "Elu",      "Selu",     "Celu",        "Sigmoid",           "Tanh",
    "Gelu",           "HardSigmoid", "Softplus", "Softsign", "Clip",        "HardSwish",         "Mish",
    "MaxPool",        "Identity",    "Dropout",  "LpPool",   "AveragePool", "GlobalAveragePool", "GlobalMaxPool",
    "ThresholdedRelu"};
/// What may stand between a layer's weights and its activation and still leave units apart: unlike layer norm, these
/// never look at other units.
const std::set<std::string_view> kOneByOne = {"BatchNormalization",
                                              "InstanceNormalization",
                                              "Add",
                                              "Sub",
                                              "Mul",
                                              "Div",
                                              "Pow",
                                              "PRelu",
                                              "Transpose",
                                              "Erf",
                                              "Exp"};
/// Operators that only move numbers about.
const std::set<std::string_view> kMoving = {"Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity"};

}  // namespace

class ShortcutFinder {
 public:
  ShortcutFinder(const Graph& graph, const model::Layer& layer, ValueId answers, std::span<const at::Tensor> sample,
                 at::Device device)
      : graph_(graph),
        layer_(layer),
        answers_(answers),
        sample_(sample),
        device_(device),
        used_by_(model::consumers(graph)) {}

  std::optional<Shortcut> find() {
    const Node& linear = graph_.nodes[size_t(layer_.node)];
    if (linear.op != "Conv" && linear.op != "Gemm" && linear.op != "MatMul") return std::nullopt;
    if (linear.inputs[0] == kAbsent || linear.inputs[1] != layer_.weight_input || layer_.merged != model::Merged::kNo)
      return std::nullopt;
    if (number(linear, "group", 1) != 1) return std::nullopt;
    found_.input = linear.inputs[0];
    const bool last = layer_.pre == answers_ || layer_.post == answers_;
    const ValueId end = layer_.pre == answers_ ? layer_.pre : layer_.post;
    if (!find_constants(end)) return std::nullopt;
    if (!last) find_reader(end);
    found_.seat = last || path_.empty() ? end : path_.back();
    if (!stands_along_axis_1(end)) return std::nullopt;
    make_chain();
    return std::move(found_);
  }

 private:
  static int64_t number(const Node& node, const char* name, int64_t otherwise) {
    auto hit = node.attributes.find(name);
    const auto* value = hit == node.attributes.end() ? nullptr : std::get_if<int64_t>(&hit->second);
    return value ? *value : otherwise;
  }

  /// Constants of the operators from the layer's input to `end`, each cut by units; false when one cannot be.
  bool find_constants(ValueId end) {
    const std::vector<bool> needed = executor::needed_nodes(graph_, with_inputs({found_.input}), {&end, 1});
    std::set<ValueId> inside = {found_.input};
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!needed[n] ||
          std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return inside.count(id); }))
        continue;
      if (int(n) != layer_.node && !kOneByOne.count(node.op) && !kUnitwise.count(node.op)) return false;
      for (ValueId id : node.inputs)
        if (id != kAbsent && !inside.count(id) && !take_constant(node, id)) return false;
      for (ValueId id : node.outputs)
        if (id != kAbsent) inside.insert(id);
    }
    return inside.count(end);
  }

  bool take_constant(const Node& node, ValueId id) {
    edits::Seen seen = edits::see(graph_, id);
    if (seen.root == kAbsent) return false;
    // Quantised numbers are not what the operator reads.
    const bool whole = seen.view.defined() && !seen.view.is_floating_point();
    if (whole && (id == layer_.weight_input || !seen.refusal.empty())) return false;
    if (id == layer_.weight_input) {
      if (!seen.view.defined() || (node.op == "MatMul" && seen.view.dim() != 2)) return false;
      found_.constants.push_back({id, layer_.weight_axis});
      return true;
    }
    if (seen.view.defined() && seen.view.numel() > 1 && node.op == "Reshape") return true;
    if (!seen.view.defined() || !seen.view.is_floating_point()) return seen.view.defined();
    if (seen.view.numel() == 1 && (layer_.units > 1 || seen.view.dim() == 0)) return true;
    for (int64_t axis = seen.view.dim() - 1; axis >= 0; --axis)
      if (seen.view.size(axis) == layer_.units && seen.view.numel() == layer_.units) {
        for (const UnitConstant& known : found_.constants)
          if (known.read == id) return true;
        found_.constants.push_back({id, axis});
        return true;
      }
    return false;
  }

  std::vector<ValueId> with_inputs(std::vector<ValueId> more) const {
    more.insert(more.end(), graph_.inputs.begin(), graph_.inputs.end());
    return more;
  }

  const Node* only_user(ValueId id) const {
    if (id == answers_ || std::count(graph_.outputs.begin(), graph_.outputs.end(), id)) return nullptr;
    return used_by_[size_t(id)].size() == 1 ? &graph_.nodes[size_t(used_by_[size_t(id)][0])] : nullptr;
  }

  /// Follows the units through pooling (`path_`) and moves (`moved_`) to the one operator that reads them.
  void find_reader(ValueId end) {
    ValueId at = end;
    const Node* next = only_user(at);
    for (; next && kUnitwise.count(next->op) && next->inputs[0] == at; next = only_user(at)) {
      at = next->outputs[0];
      path_.push_back(at);
      if (path_.size() > 32) return;
    }
    moved_ = at;
    for (; next && kMoving.count(next->op) && next->inputs[0] == at; next = only_user(at)) {
      at = next->outputs[0];
      moved_ = at;
    }
    const bool linear = next && (next->op == "Conv" || next->op == "Gemm" || next->op == "MatMul");
    if (linear && next->inputs.size() > 1 && next->inputs[0] == at) reading_ = next;
  }

  /// Runs the network on the sample to see real shapes.
  bool stands_along_axis_1(ValueId end) {
    executor::Request request;
    request.wanted = {found_.seat, end};
    if (reading_) request.wanted.push_back(moved_);
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> seen = executor::Executor(graph_, request).run(sample_);
    const int64_t count = sample_[0].size(0);
    for (size_t i = 0; i < 2; ++i)
      if (seen[i].dim() < 2 || seen[i].size(0) != count || seen[i].size(1) != layer_.units) return false;
    if (at::maybe_wrap_dim(layer_.unit_axis, seen[1].dim()) != 1 || layer_.batch_axis != 0) return false;
    if (reading_ && device_.is_cpu()) settle_reader(seen[0], seen[2]);
    return true;
  }

  void settle_reader(const at::Tensor& seat, const at::Tensor& moved) {
    edits::Seen weight = edits::see(graph_, reading_->inputs[1]);
    if (!weight.view.defined() || !weight.view.is_floating_point()) return;
    Reader reader;
    reader.output = reading_->outputs[0];
    for (ValueId id : reading_->inputs)
      if (id != kAbsent) reader.roots.push_back(edits::see(graph_, id).root);
    bool settled = reading_->op == "Conv" ? read_by_conv(reader, weight.view, seat, moved)
                                          : read_by_product(reader, weight.view, seat, moved);
    if (settled) found_.reader = std::move(reader);
  }

  bool read_by_conv(Reader& reader, const at::Tensor& weight, const at::Tensor& seat, const at::Tensor& moved) {
    if (moved_ != found_.seat || seat.dim() < 3 || moved.size(1) != weight.size(1)) return false;
    if (number(*reading_, "group", 1) != 1) return false;
    reader.kernels_ = weight.contiguous();
    Node bare = *reading_;
    bare.inputs.resize(2);
    reader.convolve_ = ops::prepare(graph_, bare);
    at::Tensor largest = reader.kernels_.abs().transpose(0, 1).flatten(1).amax(1).to(at::kDouble).contiguous();
    reader.largest_.assign(largest.data_ptr<double>(), largest.data_ptr<double>() + largest.numel());
    return true;
  }

  bool read_by_product(Reader& reader, at::Tensor weight, const at::Tensor& seat, const at::Tensor& moved) {
    if (weight.dim() != 2 || moved.dim() != 2) return false;
    if (reading_->op == "Gemm") {
      if (number(*reading_, "transA", 0)) return false;
      if (number(*reading_, "transB", 0)) weight = weight.t();
      auto alpha = reading_->attributes.find("alpha");
      if (alpha != reading_->attributes.end())
        if (const float* factor = std::get_if<float>(&alpha->second)) weight = weight * double(*factor);
    }
    // Where each number of the seat goes is found by moving its own place there.
    const int64_t units = seat.size(1), positions = seat[0].numel() / units;
    if (units * positions != moved.size(1) || weight.size(0) != moved.size(1) || units * positions > (1 << 24))
      return false;
    at::Tensor order = at::arange(units * positions, at::kFloat).reshape(seat[0].sizes()).unsqueeze(0);
    if (moved_ != found_.seat) {
      executor::Request request;
      request.given = {found_.seat};
      request.wanted = {moved_};
      try {
        order = executor::Executor(graph_, request).run({&order, 1})[0];
      } catch (const InputError&) {  // moved by a shape that is itself computed
        return false;
      }
    }
    at::Tensor back = order.flatten().to(at::kLong).argsort();
    at::Tensor blocks =
        weight.to(at::kFloat).index_select(0, back).reshape({units, positions, weight.size(1)}).contiguous();
    at::Tensor largest = blocks.abs().flatten(1).amax(1).to(at::kDouble);
    reader.largest_.assign(largest.data_ptr<double>(), largest.data_ptr<double>() + units);
    (positions == 1 ? reader.rows_ : reader.blocks_) = positions == 1 ? blocks.squeeze(1).contiguous() : blocks;
    return true;
  }

  void make_chain() {
    executor::Request chain;
    chain.given = {found_.input};
    for (const UnitConstant& constant : found_.constants) chain.given.push_back(constant.read);
    chain.wanted = {found_.seat};
    chain.device = device_;
    found_.chain = std::make_unique<executor::Executor>(graph_, chain);
  }

  const Graph& graph_;
  const model::Layer& layer_;
  ValueId answers_;
  std::span<const at::Tensor> sample_;
  at::Device device_;
  std::vector<std::vector<int>> used_by_;
  std::vector<ValueId> path_;
  ValueId moved_ = kAbsent;
  const Node* reading_ = nullptr;
  Shortcut found_;
};

std::optional<Shortcut> find_shortcut(const Graph& graph, const model::Layer& layer, ValueId answers,
                                      std::span<const at::Tensor> sample, at::Device device) {
  return ShortcutFinder(graph, layer, answers, sample, device).find();
}

}  // namespace netmend::whatif
