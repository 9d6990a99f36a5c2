#include "healing/network_edits.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "executor/layers.h"
#include "model/layer.h"
#include "stream/pass.h"

namespace netmend::healing {
namespace {

using model::Graph;
using model::kAbsent;
using model::ValueId;

constexpr int64_t kMeasured = 2048;  ///< training inputs that mean and deviation are taken of

const std::map<std::string, std::string>& operators() {
  static const std::map<std::string, std::string> names = {
      {"relu", "Relu"}, {"selu", "Selu"}, {"tanh", "Tanh"}, {"elu", "Elu"}};
  return names;
}

void leave_document(Graph& graph) {
  for (const model::Node& node : graph.nodes)
    for (const auto& [name, value] : node.attributes)
      if (std::holds_alternative<model::Subgraph>(value))
        fail("the structure of a network with branches or loops ({}) cannot be changed", node.name);
  graph.document.reset();
}

int opset_of(const Graph& graph) {
  const auto found = graph.opsets.find("");
  return found == graph.opsets.end() ? 17 : found->second;
}

std::string fresh_name(const Graph& graph, std::string name) {
  while (graph.find(name) != kAbsent) name += "_";
  return name;
}

ValueId constant(Graph& graph, const std::string& name, at::Tensor value) {
  const ValueId id = graph.add_value(fresh_name(graph, name), model::element_of(value.scalar_type()));
  model::Constant made;
  made.value = std::move(value), made.stored = graph.values[size_t(id)].type;
  graph.constants[id] = std::move(made);
  return id;
}

ValueId add_node(Graph& graph, const std::string& name, const std::string& op, std::vector<ValueId> inputs) {
  const ValueId made = graph.add_value(fresh_name(graph, name));
  model::Node node;
  node.name = graph.values[size_t(made)].name, node.op = op, node.opset = opset_of(graph);
  node.inputs = std::move(inputs), node.outputs = {made};
  graph.nodes.push_back(std::move(node));
  return made;
}

/// Everyone but `except` reads `to` instead of `from`; outputs of the graph too.
void redirect(Graph& graph, ValueId from, ValueId to, const std::set<ValueId>& except) {
  for (model::Node& node : graph.nodes) {
    if (!node.outputs.empty() && except.count(node.outputs[0])) continue;
    std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  }
}

/// Layers that another layer comes after, and that lead to the output: not the last ones.
std::vector<model::Layer> hidden_layers(const Graph& graph, ValueId output) {
  const executor::Head head = executor::find_head(graph, output);
  std::vector<model::Layer> hidden;
  for (const model::Layer& layer : executor::find_layers(graph))
    if (layer.post != head.logits && layer.pre != head.logits && layer.post != head.output &&
        (layer.op == "Gemm" || layer.op == "MatMul" || layer.op == "Conv"))
      hidden.push_back(layer);
  return hidden;
}

struct Moments {
  at::Tensor mean, deviation;
};

/// Over inputs and positions; axis 1 stays where there is one.
Moments moments_of(const at::Tensor& values, int64_t kept_axis) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < values.dim(); ++axis)
    if (axis != kept_axis) axes.push_back(axis);
  at::Tensor mean = values.mean(axes, true), deviation = (values - mean).square().mean(axes, true).sqrt();
  deviation = at::where(deviation > 1e-6 * (mean.abs() + 1e-6), deviation, at::ones_like(deviation));
  return {mean, deviation};
}

dataset::Batch some_of(const dataset::Dataset& train) {
  return train.read(stream::spread(train.size(), std::min(kMeasured, train.size())));
}

}  // namespace

void set_activations(Graph& graph, ValueId output, const std::string& function) {
  const auto known = operators().find(function);
  if (known == operators().end()) fail("there is no activation function {}", function);
  leave_document(graph);
  const std::vector<int> made_by = model::producers(graph);
  bool any = false;
  for (const model::Layer& layer : hidden_layers(graph, output)) {
    if (layer.post == layer.pre) {
      const ValueId made = add_node(graph, layer.name + "." + function, known->second, {layer.post});
      redirect(graph, layer.post, made, {made});
      any = true;
      continue;
    }
    model::Node& node = graph.nodes[size_t(made_by[size_t(layer.post)])];
    if (node.op != layer.activation || node.inputs.empty()) continue;
    node.op = known->second, node.domain.clear(), node.attributes.clear(), node.inputs.resize(1);
    any = true;
  }
  if (!any) fail("no hidden layer can have another activation function");
  model::sort_nodes(graph);
}

void add_batch_norm(Graph& graph, ValueId output) {
  leave_document(graph);
  const std::vector<int> made_by = model::producers(graph);
  bool any = false;
  for (const model::Layer& layer : hidden_layers(graph, output)) {
    if (layer.op != "Gemm" && layer.op != "Conv") continue;
    const int maker = made_by[size_t(layer.pre)];
    if (maker < 0 || graph.nodes[size_t(maker)].op == "BatchNormalization") continue;
    std::vector<ValueId> inputs = {layer.pre};
    for (const char* part : {"scale", "bias", "mean", "var"}) {
      const bool one = std::string(part) == "scale" || std::string(part) == "var";
      inputs.push_back(
          constant(graph, layer.name + ".norm." + part, one ? at::ones({layer.units}) : at::zeros({layer.units})));
    }
    const ValueId made = add_node(graph, layer.name + ".norm", "BatchNormalization", inputs);
    redirect(graph, layer.pre, made, {made});
    any = true;
  }
  if (!any) fail("no hidden layer can be followed by batch normalisation");
  model::sort_nodes(graph);
}

void standardize_inputs(Graph& graph, const dataset::Dataset& train) {
  const dataset::Batch some = some_of(train);
  if (graph.inputs.size() != 1 || some.inputs.size() != 1 || !some.inputs[0].is_floating_point())
    fail("only a single input of real numbers can be scaled");
  leave_document(graph);
  const auto& declared = graph.values[size_t(graph.inputs[0])].shape;
  const int64_t axes = declared ? int64_t(declared->size()) : some.inputs[0].dim();
  if (axes != some.inputs[0].dim()) fail("the data's shape differs from that of the network's input");
  const bool last = some.inputs[0].dim() == 4 && train.info().features[0].channels_last;
  const Moments all = moments_of(some.inputs[0].to(at::kFloat), axes < 2 ? -1 : (last ? 3 : 1));
  const ValueId input = graph.inputs[0];
  const ValueId centred = add_node(graph, "input.centred", "Sub", {input, constant(graph, "input.mean", all.mean)});
  const ValueId scaled =
      add_node(graph, "input.scaled", "Div", {centred, constant(graph, "input.deviation", all.deviation)});
  redirect(graph, input, scaled, {centred});
  model::sort_nodes(graph);
}

void scale_outputs(Graph& graph, ValueId output, const dataset::Dataset& train) {
  const dataset::Batch some = some_of(train);
  if (train.info().labels != dataset::LabelKind::kNumber || !some.labels.defined())
    fail("only targets that are numbers can be scaled");
  leave_document(graph);
  const at::Tensor targets = some.labels.to(at::kFloat).reshape({some.count(), -1});
  const Moments all = moments_of(targets, 1);
  const ValueId scaled =
      add_node(graph, "output.scaled", "Mul", {output, constant(graph, "output.deviation", all.deviation)});
  const ValueId moved = add_node(graph, "output.moved", "Add", {scaled, constant(graph, "output.mean", all.mean)});
  // The output keeps its name: what made it gets another one.
  std::replace(graph.outputs.begin(), graph.outputs.end(), output, moved);
  const std::string name = graph.values[size_t(output)].name;
  graph.values[size_t(output)].name = fresh_name(graph, name + ".raw");
  graph.values[size_t(moved)] = {name, graph.values[size_t(output)].type, graph.values[size_t(output)].shape};
  redirect(graph, output, moved, {scaled});
  model::sort_nodes(graph);
}

}  // namespace netmend::healing
