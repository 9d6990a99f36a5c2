// Control flow: operators that run graphs of their own. A body runs node by node, as its operators are prepared; what
// it reads from outside comes as inputs of the node.
#include <algorithm>
#include <cmath>

#include "model/guard.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/turns.h"

namespace netmend::ops::families {
namespace {

using model::kAbsent;
using model::ValueId;

/// A graph inside a node, prepared.
class Body {
 public:
  Body(const NodeView& node, std::string_view attribute) {
    const model::Subgraph* subgraph = node.body(attribute);
    node.require(subgraph, "attribute {} is missing", attribute);
    graph_ = subgraph->graph, reads_ = subgraph->reads;
    formal_ = graph_->inputs.size() - std::min(graph_->inputs.size(), reads_.size());
    for (const model::Node& inner : graph_->nodes) kernels_.push_back(prepare(*graph_, inner));
  }

  size_t inputs() const { return formal_; }
  size_t outputs() const { return graph_->outputs.size(); }

  /// `given` are the formal inputs; the rest comes from the call of the node that holds the body.
  std::vector<at::Tensor> run(const Call& call, std::vector<at::Tensor> given, uint64_t turn = 0) const {
    std::vector<at::Tensor> values(graph_->values.size());
    for (size_t i = 0; i < graph_->inputs.size(); ++i)
      values[size_t(graph_->inputs[i])] = i < formal_ ? std::move(given[i]) : call.in(reads_[i - formal_]);
    for (size_t n = 0; n < kernels_.size(); ++n) run_node(call, n, values, turn);
    std::vector<at::Tensor> results;
    for (ValueId id : graph_->outputs) {
      results.push_back(values[size_t(id)]);
      if (!results.back().defined()) fail("the body does not make {}", graph_->values[size_t(id)].name);
    }
    return results;
  }

 private:
  void run_node(const Call& call, size_t n, std::vector<at::Tensor>& values, uint64_t turn) const {
    const model::Node& node = graph_->nodes[n];
    std::vector<at::Tensor> inputs, outputs(node.outputs.size());
    for (ValueId id : node.inputs) inputs.push_back(id == kAbsent ? at::Tensor() : values[size_t(id)]);
    Call inner(inputs, outputs, 0, call.training(), call.seed() + 0x9e3779b97f4a7c15U * (n + 1) + turn, call.real());
    model::guarded([&] { return fmt::format("node {} ({}) of its body", node.name, node.op); },
                   [&] { kernels_[n](inner); });
    for (size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i] != kAbsent) values[size_t(node.outputs[i])] = outputs[i];
  }

  std::shared_ptr<const model::Graph> graph_;
  std::vector<size_t> reads_;
  size_t formal_ = 0;
  std::vector<Kernel> kernels_;
};

/// Values of the graph around a body are handed on as views: who owns memory decides what may be overwritten.
void set_all(Call& call, const std::vector<at::Tensor>& results) {
  for (size_t i = 0; i < results.size(); ++i) call.set(i, at::alias(results[i]));
}

bool is_true(const at::Tensor& x, const char* what) {
  if (x.numel() != 1) fail("{} has {} elements, expected one", what, x.numel());
  return x.to(at::kBool).item<bool>();
}

constexpr int64_t kMostTurns = 1 << 24;  // a loop that runs longer never ends

/// Outputs of all turns side by side along a new axis.
at::Tensor stacked(const std::vector<at::Tensor>& parts, int64_t axis) {
  if (parts.empty()) fail("it makes no turn: the shape of what its turns would give is not known");
  return at::stack(parts, axis_in(axis, parts[0].dim() + 1));
}

struct ScanForm {
  int64_t scanned, states;
  std::vector<int64_t> input_axes, output_axes, input_directions, output_directions;

  ScanForm(const NodeView& node, const Body& body)
      : scanned(node.integer("num_scan_inputs", 0)),
        input_axes(node.integers("scan_input_axes")),
        output_axes(node.integers("scan_output_axes")),
        input_directions(node.integers("scan_input_directions")),
        output_directions(node.integers("scan_output_directions")) {
    states = int64_t(node.inputs() - node.node().captured) - scanned;
    node.require(
        scanned > 0 && states >= 0 && body.inputs() == size_t(states + scanned) && body.outputs() >= size_t(states),
        "its body takes {} inputs and makes {} outputs, for {} states and {} scanned inputs", body.inputs(),
        body.outputs(), states, scanned);
  }
  static int64_t at(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }
};

at::Tensor slice_of(const at::Tensor& x, int64_t axis, bool backwards, int64_t turn) {
  return x.select(axis, backwards ? x.size(axis) - 1 - turn : turn);
}

void scan_through(Call& call, const Body& body, const ScanForm& form) {
  std::vector<at::Tensor> state;
  for (int64_t i = 0; i < form.states; ++i) state.push_back(call.in(size_t(i)));
  std::vector<int64_t> axes;
  int64_t turns = -1;
  for (int64_t i = 0; i < form.scanned; ++i) {
    const at::Tensor& x = call.in(size_t(form.states + i));
    axes.push_back(axis_in(ScanForm::at(form.input_axes, size_t(i)), x.dim()));
    if (turns >= 0 && x.size(axes.back()) != turns) fail("scanned inputs differ in length");
    turns = x.size(axes.back());
  }
  std::vector<std::vector<at::Tensor>> outputs(body.outputs() - size_t(form.states));
  for (int64_t t = 0; t < turns; ++t) {
    begin_turn();
    std::vector<at::Tensor> given = state;
    for (size_t i = 0; i < axes.size(); ++i)
      given.push_back(
          slice_of(call.in(size_t(form.states) + i), axes[i], ScanForm::at(form.input_directions, i) != 0, t));
    std::vector<at::Tensor> made = body.run(call, std::move(given), uint64_t(t) << 32);
    state.assign(made.begin(), made.begin() + form.states);
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back(made[size_t(form.states) + i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (ScanForm::at(form.output_directions, i) != 0) std::reverse(outputs[i].begin(), outputs[i].end());
    state.push_back(stacked(outputs[i], ScanForm::at(form.output_axes, i)));
  }
  set_all(call, state);
}

}  // namespace

Kernel if_else(const NodeView& node) {
  Body yes(node, "then_branch"), no(node, "else_branch");
  node.require(yes.inputs() == 0 && no.inputs() == 0, "a branch takes inputs");
  node.require(yes.outputs() >= node.outputs() && no.outputs() >= node.outputs(), "a branch makes too few outputs");
  return [=](Call& call) { set_all(call, (is_true(call.in(0), "the condition") ? yes : no).run(call, {})); };
}

/// Inputs: most turns, condition, values that each turn hands to the next. The body's first output is the condition.
Kernel loop(const NodeView& node) {
  Body body(node, "body");
  size_t given = node.inputs() - node.node().captured, carried = given < 2 ? 0 : given - 2;
  node.require(body.inputs() == carried + 2 && body.outputs() >= carried + 1,
               "its body takes {} inputs and makes {} outputs, for {} values that are carried", body.inputs(),
               body.outputs(), carried);
  return [=](Call& call) {
    bool limited = given > 0 && call.has(0), go = !(given > 1 && call.has(1)) || is_true(call.in(1), "the condition");
    int64_t most = limited ? integer_of(call.in(0), "the trip count") : kMostTurns;
    std::vector<at::Tensor> state;
    for (size_t i = 0; i < carried; ++i) state.push_back(call.in(i + 2));
    std::vector<std::vector<at::Tensor>> scans(body.outputs() - 1 - carried);
    at::TensorOptions where =
        call.inputs() > 0 && call.has(call.inputs() - 1) ? call.in(call.inputs() - 1).options() : at::TensorOptions();
    for (int64_t t = 0; go && t < most; ++t) {
      begin_turn();
      if (t >= kMostTurns) fail("the loop does not end within {} turns", kMostTurns);
      std::vector<at::Tensor> inputs = {at::scalar_tensor(t, where.dtype(at::kLong)),
                                        at::scalar_tensor(true, where.dtype(at::kBool))};
      inputs.insert(inputs.end(), state.begin(), state.end());
      std::vector<at::Tensor> made = body.run(call, std::move(inputs), uint64_t(t) << 32);
      go = is_true(made[0], "the condition");
      state.assign(made.begin() + 1, made.begin() + 1 + int64_t(carried));
      for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back(made[1 + carried + i]);
    }
    if (!limited && go) fail("the loop does not end within {} turns", kMostTurns);
    for (const auto& scan : scans) state.push_back(stacked(scan, 0));
    set_all(call, state);
  };
}

/// Opset 8 scans batches of sequences and has lengths as its first input.
Kernel scan(const NodeView& node) {
  if (node.opset() < 9) throw Unsupported("Scan of opset 8 is not supported", "Export it with a newer opset.");
  Body body(node, "body");
  ScanForm form(node, body);
  return [=](Call& call) { scan_through(call, body, form); };
}

/// Attention whose scores and weights may be changed by graphs of the file.
Kernel flex_attention(const NodeView& node) {
  std::optional<Body> score, probability;
  if (node.has("score_mod")) score.emplace(node, "score_mod");
  if (node.has("prob_mod")) probability.emplace(node, "prob_mod");
  for (const auto& body : {score, probability})
    node.require(!body || (body->inputs() == 1 && body->outputs() == 1), "a graph does not map one tensor to one");
  double given = node.real("scale", 0);
  auto precision = model::Element(node.integer("softmax_precision", 0));
  model::Element type = node.declared_type(0);
  node.require(given >= 0, "scale is {}", given);
  node.require(precision == model::Element::kUndefined || model::supported(precision), "softmax_precision is {}",
               model::element_name(precision));
  return [=](Call& call) {
    const at::Tensor &q = call.in(0), &k = call.in(1), &v = call.in(2);
    if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) fail("queries, keys and values must have 4 axes");
    if (q.size(3) == 0 || k.size(1) == 0 || q.size(1) % k.size(1) != 0 || v.size(1) != k.size(1))
      fail("{} query heads for {} and {} heads", q.size(1), k.size(1), v.size(1));
    double root = std::sqrt(given > 0 ? given : 1 / std::sqrt(double(q.size(3))));
    auto as_type = [&](const at::Tensor& x) { return rounded_as(x, type); };
    auto spread = [&](const at::Tensor& x) { return x.repeat_interleave(q.size(1) / k.size(1), 1); };
    at::Tensor factor = as_type(at::scalar_tensor(root, q.options()));
    at::Tensor scores = as_type(at::matmul(as_type(q * factor), as_type(spread(k) * factor).transpose(2, 3)));
    bool same = precision == model::Element::kUndefined;
    if (!same) scores = cast_to(call, scores, precision);
    if (score) scores = score->run(call, {scores})[0];
    at::Tensor weights = at::softmax(scores, -1);
    if (!same) weights = rounded_as(weights, precision);
    if (probability) weights = probability->run(call, {weights})[0];
    call.set(0, as_type(at::matmul(weights, spread(v).to(weights.scalar_type()))).to(v.scalar_type()));
  };
}

/// Optionals of tensors: one that is there is the tensor itself, an absent input is an empty one.
Kernel optional_has_element(const NodeView&) {
  return [](Call& call) {
    at::Device device = call.has(0) ? call.in(0).device() : at::Device(at::kCPU);
    call.set(0, at::scalar_tensor(call.has(0), at::TensorOptions(at::kBool).device(device)));
  };
}

Kernel optional_get_element(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::alias(x); });
}

// clang-format off
std::span<const Op> control_rows() {
  static constexpr Op kRows[] = {
      {.name = "FlexAttention", .prepare = flex_attention, .domain = "ai.onnx.preview"},
      {.name = "If", .prepare = if_else},
      {.name = "Loop", .prepare = loop},
      {.name = "OptionalGetElement", .prepare = optional_get_element},
      {.name = "OptionalHasElement", .prepare = optional_has_element, .differentiable = false},
      {.name = "Scan", .prepare = scan},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
