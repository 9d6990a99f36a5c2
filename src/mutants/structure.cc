#include "mutants/structure.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace netmend::mutants {

using model::Graph;
using model::kAbsent;
using model::Layer;
using model::Node;
using model::ValueId;

const std::vector<std::string>& activations() {
  static const std::vector<std::string> names = {"Identity", "Relu",    "LeakyRelu", "Elu",      "Selu",
                                                 "Tanh",     "Sigmoid", "Softplus",  "Softsign", "HardSigmoid"};
  return names;
}

int64_t gates_of(const std::string& op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : op == "RNN" ? 1 : 0; }

namespace {

int maker_of(const Graph& graph, ValueId value) {
  const int maker = model::producers(graph)[size_t(value)];
  if (maker < 0) fail("{} is not made by a node", graph.values[size_t(value)].name);
  return maker;
}

ValueId new_value(Graph& graph, const std::string& name) { return graph.add_value("mutant/" + name); }

ValueId add_constant(Graph& graph, const std::string& name, const at::Tensor& value, model::Element stored) {
  const ValueId id = new_value(graph, name);
  model::Constant constant;
  constant.value = value, constant.stored = stored;
  graph.constants[id] = std::move(constant);
  return id;
}

Node new_node(const Node& like, const std::string& name, const std::string& op, std::vector<ValueId> inputs,
              std::vector<ValueId> outputs) {
  Node node;
  node.name = "mutant/" + name, node.op = op, node.opset = like.domain.empty() ? like.opset : 17;
  node.inputs = std::move(inputs), node.outputs = std::move(outputs);
  return node;
}

/// Everyone but `except` reads `to` instead of `from`.
void redirect(Graph& graph, ValueId from, ValueId to, const std::set<std::string>& except) {
  int64_t readers = 0;
  for (Node& node : graph.nodes) {
    if (except.count(node.name)) continue;
    for (ValueId& id : node.inputs)
      if (id == from) id = to, ++readers;
  }
  if (readers == 0) fail("nothing reads {}", graph.values[size_t(from)].name);
}

int activation_node(const Graph& graph, const Layer& layer) {
  if (layer.post == layer.pre) fail("{} has no activation function", layer.name);
  const int maker = maker_of(graph, layer.post);
  const Node& node = graph.nodes[size_t(maker)];
  if (node.op != layer.activation || node.inputs.empty())
    fail("the activation function of {} is not one operator", layer.name);
  return maker;
}

}  // namespace

ValueId layer_input(const Graph& graph, const Layer& layer, ValueId output) {
  for (ValueId id : graph.nodes[size_t(maker_of(graph, output))].inputs)
    if (id != kAbsent && id != layer.weight_input && id != layer.bias_input && !graph.is_constant(id)) return id;
  fail("{} has no input", layer.name);
}

ValueId replace_activation(Graph& graph, const Layer& layer, const std::string& op) {
  Node& node = graph.nodes[size_t(activation_node(graph, layer))];
  if (node.op == op) fail("{} has that activation function", layer.name);
  node.op = op, node.domain.clear();
  node.attributes.clear();
  node.inputs.resize(1);
  return node.inputs[0];
}

ValueId insert_activation(Graph& graph, const Layer& layer, const std::string& op) {
  const Node like = graph.nodes[size_t(maker_of(graph, layer.post))];
  const ValueId made = new_value(graph, layer.name + "/added");
  redirect(graph, layer.post, made, {});
  graph.nodes.push_back(new_node(like, layer.name + "/added", op, {layer.post}, {made}));
  model::sort_nodes(graph);
  return layer.post;
}

ValueId remove_layer(Graph& graph, const Layer& layer, ValueId output) {
  const ValueId input = layer_input(graph, layer, output);
  redirect(graph, layer.post, input, {});
  return input;
}

ValueId duplicate_layer(Graph& graph, const Layer& layer, ValueId output) {
  const ValueId input = layer_input(graph, layer, output);
  // Nodes on the way from the layer's input to what it makes.
  std::set<ValueId> reached = {input}, needed = {layer.post};
  for (const Node& node : graph.nodes)
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return reached.count(id); }))
      reached.insert(node.outputs.begin(), node.outputs.end());
  std::vector<Node> way;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool inside =
        std::any_of(node->outputs.begin(), node->outputs.end(), [&](ValueId id) { return needed.count(id); }) &&
        std::any_of(node->inputs.begin(), node->inputs.end(), [&](ValueId id) { return reached.count(id); });
    if (!inside) continue;
    way.insert(way.begin(), *node);
    for (ValueId id : node->inputs)
      if (id != input && reached.count(id)) needed.insert(id);
  }
  std::map<ValueId, ValueId> renamed = {{input, layer.post}};
  std::set<std::string> copies;
  for (Node& node : way) {
    node.name = "mutant/" + node.name;
    copies.insert(node.name);
    for (ValueId& id : node.inputs)
      if (auto hit = renamed.find(id); hit != renamed.end()) id = hit->second;
    for (ValueId& id : node.outputs)
      if (id != kAbsent) id = renamed[id] = new_value(graph, graph.values[size_t(id)].name);
  }
  redirect(graph, layer.post, renamed.at(layer.post), copies);
  graph.nodes.insert(graph.nodes.end(), way.begin(), way.end());
  model::sort_nodes(graph);
  return layer.post;
}

namespace {

/// A recurrent node written anew as several, one behind the other.
class Steps {
 public:
  Steps(Graph& graph, const Layer& layer, ValueId output) : graph_(graph), layer_(layer) {
    const int maker = maker_of(graph, output);
    node_ = graph.nodes[size_t(maker)];
    require_plain();
    graph.nodes.erase(graph.nodes.begin() + maker);
    state_.h = input(5), state_.c = input(6);
  }

  struct State {
    ValueId h = kAbsent, c = kAbsent;
  };
  State& state() { return state_; }
  ValueId all() const { return pieces_.back(); }
  bool lstm() const { return node_.op == "LSTM"; }
  const Node& node() const { return node_; }
  ValueId input(size_t slot) const { return slot < node_.inputs.size() ? node_.inputs[slot] : kAbsent; }
  ValueId positions() const { return node_.inputs[0]; }

  ValueId integers(const std::string& name, std::vector<int64_t> values) {
    return add_constant(graph_, layer_.name + "/" + name, at::tensor(values, at::kLong), model::Element::kInt64);
  }
  ValueId numbers(const std::string& name, const at::Tensor& value) {
    return add_constant(graph_, layer_.name + "/" + name, value.to(at::kFloat), model::Element::kFloat);
  }
  ValueId add(const std::string& name, const std::string& op, std::vector<ValueId> inputs) {
    const ValueId made = new_value(graph_, layer_.name + "/" + name);
    graph_.nodes.push_back(new_node(node_, layer_.name + "/" + name, op, std::move(inputs), {made}));
    return made;
  }
  ValueId part(const std::string& name, ValueId of, int64_t first, int64_t end) {
    return add(name, "Slice",
               {of, integers(name + "-first", {first}), integers(name + "-end", {end}), integers(name + "-axis", {0})});
  }

  /// Runs positions first … end − 1 with the state so far; weights as they are, or others.
  void run(const std::string& name, int64_t first, int64_t end, ValueId w, ValueId r, ValueId b) {
    Node piece = node_;
    piece.name = "mutant/" + layer_.name + "/" + name;
    piece.inputs = {part(name + "-x", positions(), first, end), w, r, b, kAbsent, state_.h};
    if (lstm()) piece.inputs.push_back(state_.c), piece.inputs.push_back(input(7));
    const ValueId y = new_value(graph_, name + "-y");
    state_.h = new_value(graph_, name + "-h");
    piece.outputs = {y, state_.h};
    if (lstm()) piece.outputs.push_back(state_.c = new_value(graph_, name + "-c"));
    graph_.nodes.push_back(std::move(piece));
    pieces_.push_back(y);
  }
  void run(const std::string& name, int64_t first, int64_t end) { run(name, first, end, input(1), input(2), input(3)); }

  /// Gives the node's outputs to whoever read them.
  void finish() {
    Node joined = new_node(node_, layer_.name + "/joined", "Concat", pieces_, {node_.outputs[0]});
    joined.attributes["axis"] = int64_t(0);
    if (node_.outputs[0] != kAbsent) graph_.nodes.push_back(std::move(joined));
    for (size_t slot = 1; slot < node_.outputs.size(); ++slot)
      if (node_.outputs[slot] != kAbsent)
        graph_.nodes.push_back(new_node(node_, layer_.name + (slot == 1 ? "/last-h" : "/last-c"), "Identity",
                                        {slot == 1 ? state_.h : state_.c}, {node_.outputs[slot]}));
    model::sort_nodes(graph_);
  }

 private:
  void require_plain() const {
    auto text = [&](const char* name) {
      auto hit = node_.attributes.find(name);
      const auto* value = hit == node_.attributes.end() ? nullptr : std::get_if<std::string>(&hit->second);
      return value ? *value : std::string("forward");
    };
    auto number = [&](const char* name) {
      auto hit = node_.attributes.find(name);
      const auto* value = hit == node_.attributes.end() ? nullptr : std::get_if<int64_t>(&hit->second);
      return value ? *value : int64_t(0);
    };
    if (gates_of(node_.op) == 0) fail("{} is not recurrent", layer_.name);
    if (text("direction") != "forward" || number("layout") != 0)
      fail("{} does not run forward with the positions first", layer_.name);
    if (input(4) != kAbsent)
      fail("{} reads lengths of sequences, so a step is not at the same place in all of them", layer_.name);
  }

  Graph& graph_;
  const Layer& layer_;
  Node node_;
  State state_;
  std::vector<ValueId> pieces_;
};

ValueId rounded(Steps& steps, const std::string& name, ValueId value) {
  const ValueId ten = steps.numbers(name + "-ten", at::full({}, 10.0));
  return steps.add(name + "-back", "Div",
                   {steps.add(name + "-round", "Round", {steps.add(name + "-times", "Mul", {value, ten})}), ten});
}

void change_state(Steps& steps, StepChange change, int64_t step, double deviation, Random& random, int64_t hidden) {
  ValueId& h = steps.state().h;
  if (change == StepChange::kStateClear) {
    h = steps.add("clear", "Mul", {h, steps.numbers("zero", at::zeros({}))});
  } else if (change == StepChange::kStateFuzz) {
    at::Tensor factors = at::empty({hidden}, at::kFloat);
    for (int64_t i = 0; i < hidden; ++i) factors[i] = 1 + deviation * random.normal();
    h = steps.add("fuzz", "Mul", {h, steps.numbers("factors", factors)});
  } else if (change == StepChange::kStatePrecision) {
    h = rounded(steps, "precision", h);
  } else {  // back to the state of half as many steps: position × direction × input × feature
    const int64_t earlier = std::max<int64_t>(0, step / 2 - 1);
    const ValueId one = steps.part("earlier", steps.all(), earlier, earlier + 1);
    h = steps.add("reset", "Squeeze", {one, steps.integers("axis", {0})});
  }
}

/// Rows of one gate, changed: weights of inputs, of the state, and biases.
at::Tensor changed_rows(const at::Tensor& value, StepChange change, int64_t gate, int64_t hidden, bool sigmoid,
                        bool bias, double deviation, Random& random) {
  at::Tensor copy = value.clone();
  for (int64_t first = gate * hidden; first < value.size(1); first += value.size(1) / (bias ? 2 : 1)) {
    at::Tensor rows = copy.narrow(1, first, hidden);
    if (change == StepChange::kGatePrecision) rows.copy_((rows * 10).round() / 10);
    if (change == StepChange::kGateClear) {
      rows.zero_();
      if (bias && sigmoid && first < value.size(1) / 2) rows.fill_(-100);  // sigmoid(−100) is 0 in float32's view
    }
    if (change == StepChange::kGateFuzz && bias && first < value.size(1) / 2)
      for (int64_t i = 0; i < hidden; ++i) rows.select(1, i).add_(deviation * random.normal());
  }
  return copy;
}

}  // namespace

ValueId disturb_step(Graph& graph, const Layer& layer, ValueId output, StepChange change, int64_t step, int64_t length,
                     int64_t gate, double deviation, Random& random) {
  Steps steps(graph, layer, output);
  const Node node = steps.node();
  const ValueId from = steps.positions();
  const at::Tensor r = graph.constant(steps.input(2));
  if (!r.defined()) fail("the weights of {} are computed", layer.name);
  const int64_t hidden = r.size(2);
  steps.run("before", 0, step);
  const bool state = change == StepChange::kStateClear || change == StepChange::kStateReset ||
                     change == StepChange::kStateFuzz || change == StepChange::kStatePrecision;
  if (state) {
    change_state(steps, change, step, deviation, random, hidden);
    steps.run("after", step, length);
  } else {
    const at::Tensor w = graph.constant(steps.input(1)), b = graph.constant(steps.input(3));
    if (!w.defined() || !b.defined()) fail("{} has no weights and biases of its own", layer.name);
    const bool sigmoid = gate + 1 < gates_of(node.op);  // the last gate is the candidate: tanh
    auto changed = [&](const at::Tensor& value, bool bias) {
      return changed_rows(value, change, gate, hidden, sigmoid, bias, deviation, random);
    };
    const ValueId own_w = steps.numbers("step-w", changed(w, false)),
                  own_r = steps.numbers("step-r", changed(r, false)), own_b = steps.numbers("step-b", changed(b, true));
    steps.run("step", step, step + 1, own_w, own_r, own_b);
    if (step + 1 < length) steps.run("after", step + 1, length);
  }
  steps.finish();
  return from;
}

}  // namespace netmend::mutants
