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
    if (!needed[n]) {  // somebody may still ask for it; what cannot run may be among these
      left.push_back(graph.nodes[n]);
      continue;
    }
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

namespace {

/// The values that must keep their meaning: nothing may be rewritten across them.
class Rewriter {
 public:
  Rewriter(Graph& graph, const Request& request)
      : graph_(graph), made_by_(model::producers(graph)), used_by_(model::consumers(graph)) {
    fixed_.insert(request.wanted.begin(), request.wanted.end());
    fixed_.insert(request.given.begin(), request.given.end());
  }

  void run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op == "BatchNormalization") fold_batch_norm(int(n));
      if (graph_.nodes[n].op == "MaxPool") pool_before_relu(int(n));
    }
    std::erase_if(graph_.nodes, [](const Node& node) { return node.op.empty(); });
  }

 private:
  /// The node that makes `id` for one user alone, or nullptr.
  Node* sole_producer(ValueId id) {
    if (id == kAbsent || fixed_.count(id) || made_by_[size_t(id)] < 0 || used_by_[size_t(id)].size() != 1)
      return nullptr;
    return &graph_.nodes[size_t(made_by_[size_t(id)])];
  }

  ValueId add_constant(const std::string& name, const at::Tensor& value) {
    ValueId id = graph_.add_value(name, model::Element::kFloat);
    graph_.constants[id] = {value, model::Element::kFloat, {}, false};
    made_by_.push_back(-1);
    used_by_.emplace_back();
    return id;
  }

  /// y = (wx + b − mean)·s + offset with s = scale/√(variance + ε): the same operator with other weights.
  void fold_batch_norm(int at) {
    Node& norm = graph_.nodes[size_t(at)];
    Node* linear = sole_producer(norm.inputs[0]);
    const ops::Op* op = linear ? ops::find(linear->domain, linear->op) : nullptr;
    if (!op || !op->units || norm.inputs.size() != 5 || (linear->op != "Conv" && linear->op != "Gemm")) return;
    for (size_t slot = 1; slot < 5; ++slot)
      if (!graph_.is_constant(norm.inputs[slot]) || fixed_.count(norm.inputs[slot])) return;
    for (size_t slot = 1; slot < linear->inputs.size(); ++slot)  // a weight that is given is a variable
      if (linear->inputs[slot] != kAbsent && fixed_.count(linear->inputs[slot])) return;
    auto units = op->units(ops::NodeView(graph_, *linear));
    if (!units) return;
    units->bias_slot = 2;  // of both operators, whether this node uses it or not
    ops::NodeView norm_view(graph_, norm), linear_view(graph_, *linear);
    if (norm_view.integer("training_mode", 0) != 0 || linear_view.real("beta", 1) != 1) return;
    at::Tensor scale =
        graph_.constant(norm.inputs[1]) / at::sqrt(graph_.constant(norm.inputs[4]) + norm_view.real("epsilon", 1e-5));
    at::Tensor weight = graph_.constant(linear->inputs[size_t(units->weight_slot)]);
    at::Tensor bias = linear_view.constant(size_t(units->bias_slot));
    bool has_bias = linear_view.has_input(size_t(units->bias_slot));
    if (scale.dim() != 1 || scale.numel() != units->count || (has_bias && (!bias.defined() || bias.dim() != 1))) return;
    std::vector<int64_t> along(size_t(weight.dim()), 1);
    along[size_t(units->weight_axis)] = units->count;
    at::Tensor shifted = (has_bias ? bias : at::zeros_like(scale)) - graph_.constant(norm.inputs[3]);
    linear->inputs.resize(std::max(linear->inputs.size(), size_t(units->bias_slot) + 1), kAbsent);
    linear->inputs[size_t(units->weight_slot)] = add_constant(norm.name + "/weight", weight * scale.reshape(along));
    linear->inputs[size_t(units->bias_slot)] =
        add_constant(norm.name + "/bias", shifted * scale + graph_.constant(norm.inputs[2]));
    take_over(*linear, norm);
  }

  /// maxpool(relu(x)) = relu(maxpool(x)), and the second does relu on a quarter of the values.
  void pool_before_relu(int at) {
    Node& pool = graph_.nodes[size_t(at)];
    Node* relu = sole_producer(pool.inputs[0]);
    bool indices = pool.outputs.size() > 1 && pool.outputs[1] != kAbsent;
    if (!relu || relu->op != "Relu" || indices || relu->inputs[0] == kAbsent) return;
    ValueId before = relu->inputs[0], middle = relu->outputs[0];
    std::swap(*relu, pool);  // the earlier place in the order now pools
    Node& first = graph_.nodes[size_t(made_by_[size_t(middle)])];
    Node& second = graph_.nodes[size_t(at)];
    ValueId after = first.outputs[0];
    first.inputs[0] = before, first.outputs[0] = middle;
    second.inputs[0] = middle, second.outputs[0] = after;
  }

  /// `kept` makes what `gone` made.
  void take_over(Node& kept, Node& gone) {
    kept.outputs[0] = gone.outputs[0];
    made_by_[size_t(kept.outputs[0])] = int(&kept - graph_.nodes.data());
    gone.op.clear();
  }

  Graph& graph_;
  std::vector<int> made_by_;
  std::vector<std::vector<int>> used_by_;
  std::unordered_set<ValueId> fixed_;
};

/// Weights with the channels innermost make the library keep activations that way too. That pays for 3×3 kernels over
/// many channels (16→16 at 32×32: 75 → 47 µs) and not for the few channels of a LeNet; one network uses one layout.
void choose_layout(Graph& graph) {
  double gains = 0, all = 0;
  auto weight_of = [&](const Node& node) {
    return node.op == "Conv" && node.inputs.size() > 1 ? graph.constant(node.inputs[1]) : at::Tensor();
  };
  for (const Node& node : graph.nodes) {
    at::Tensor weight = weight_of(node);
    if (!weight.defined() || weight.dim() != 4) continue;
    all += double(weight.numel());
    if (weight.size(1) >= 16) gains += double(weight.numel());
  }
  if (gains < 0.5 * all || all == 0) return;
  for (const Node& node : graph.nodes) {
    at::Tensor weight = weight_of(node);
    if (weight.defined() && weight.dim() == 4)
      graph.constants[node.inputs[1]].value = weight.contiguous(at::MemoryFormat::ChannelsLast);
  }
}

void drop_unneeded(Graph& graph, const Request& request) {
  std::vector<bool> needed = needed_nodes(graph, request.given, request.wanted);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (!needed[n]) graph.nodes[n].op.clear();
  std::erase_if(graph.nodes, [](const Node& node) { return node.op.empty(); });
}

}  // namespace

void optimise(Graph& graph, const Request& request) {
  drop_unneeded(graph, request);
  fold_constants(graph, request);
  Rewriter(graph, request).run();
  // On a GPU it pays where products are those of tensor cores.
  if (request.device.is_cpu() || at::globalContext().allowTF32CuDNN()) choose_layout(graph);
}

}  // namespace netmend::executor
