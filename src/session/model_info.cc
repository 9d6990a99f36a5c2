#include "session/model_info.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "executor/cost.h"
#include "executor/executor.h"
#include "executor/layers.h"
#include "model/guard.h"
#include "onnx/reader.h"
#include "ops/turns.h"
#include "session/session.h"

namespace netmend::session {
namespace {

constexpr double kSecondsOfLoops = 5;  ///< of a network that is only looked at

using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;
using Shape = std::vector<int64_t>;
using Shapes = std::map<std::string, Shape>;

Shapes parse_shapes(const std::vector<std::string>& texts) {
  Shapes shapes;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) fail("--shape {}: expected NAME=1x3x224x224", text);
    for (const std::string& part : split(text.substr(equals + 1), 'x')) {
      int64_t size = 0;
      if (!parse_int(part, size) || size < 0)
        fail("--shape {}: '{}' is not a size; expected NAME=1x3x224x224", text, part);
      shapes[text.substr(0, equals)].push_back(size);
    }
  }
  return shapes;
}

void require_inputs(const Graph& graph, const Shapes& given) {
  std::vector<std::string> names;
  for (ValueId id : graph.inputs) names.push_back(graph.values[size_t(id)].name);
  for (const auto& [name, shape] : given)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(
          fmt::format("--shape: the model has no input `{}`{}", printable(name), did_you_mean(name, names)),
          "Its inputs are " + join(names, ", ") + ".");
}

/// Sizes to try an input with: the file's own, 1 for the batch, `free` for what the file leaves open.
Shape trial_shape(const model::Value& value, int64_t free) {
  if (!value.shape) return {1, free};
  Shape shape;
  for (size_t axis = 0; axis < value.shape->size(); ++axis) {
    const int64_t size = (*value.shape)[axis].size;
    shape.push_back(size >= 0 ? size : axis == 0 ? 1 : free);
  }
  return shape;
}

at::Tensor trial_input(const model::Value& value, const Shape& shape) {
  if (model::checked_count(shape) < 0) fail("input {} has an impossible shape, {}", value.name, shape_text(shape));
  const at::TensorOptions options = at::TensorOptions().dtype(model::carrier(value.type));
  const bool mask = lower(value.name).find("mask") != std::string::npos;
  return model::guarded([&] { return "input " + printable(value.name); },
                        [&] { return mask ? at::ones(shape, options) : at::zeros(shape, options); });
}

/// What a trial run showed: the shape of every value that was made, and the failure if there was one.
struct Trial {
  std::map<ValueId, Shape> shapes;
  std::map<ValueId, double> bytes;     ///< of every value that was made; 0 for a view of another
  std::map<ValueId, ValueId> view_of;  ///< whose memory a value shares
  std::map<int, double> flops;         ///< by node
  std::string error;
  int failed_node = -1;
  int64_t free = 0;  ///< size taken for what the file leaves open; 0 when nothing is open
};

Trial try_shapes(const Graph& graph, ValueId output, const Shapes& given, int64_t free) {
  Trial trial;
  executor::Request request;
  if (output != kAbsent) request.wanted = {output};
  request.mode = executor::Mode::kPlain;
  executor::Executor executor(graph, request);
  std::vector<at::Tensor> inputs;
  for (ValueId id : graph.inputs) {
    const model::Value& value = graph.values[size_t(id)];
    const auto hit = given.find(value.name);
    const Shape shape = hit != given.end() ? hit->second : trial_shape(value, free);
    for (size_t axis = 1; value.shape && hit == given.end() && axis < value.shape->size(); ++axis)
      if ((*value.shape)[axis].size < 0) trial.free = free;
    trial.shapes[id] = shape;
    inputs.push_back(trial_input(value, shape));
    trial.bytes[id] = double(inputs.back().nbytes());
  }
  const std::vector<bool> needed =
      executor::needed_nodes(graph, graph.inputs, request.wanted.empty() ? graph.outputs : request.wanted);
  int last = -1;
  executor::RunOptions run;
  run.trace = [&](int node, std::span<const at::Tensor> operands, std::span<const at::Tensor> outputs) {
    last = node;
    const Node& at = graph.nodes[size_t(node)];
    trial.flops[node] = 2 * executor::multiply_adds(at.op, operands, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined() || at.outputs[i] == kAbsent) continue;
      trial.shapes[at.outputs[i]] = outputs[i].sizes().vec();
      trial.bytes[at.outputs[i]] = double(outputs[i].nbytes());
      for (size_t k = 0; k < operands.size(); ++k)
        if (operands[k].defined() && outputs[i].is_alias_of(operands[k])) {
          trial.bytes[at.outputs[i]] = 0;
          trial.view_of[at.outputs[i]] = at.inputs[k];
        }
    }
  };
  try {
    at::NoGradGuard no_grad;
    executor.run(inputs, run);
  } catch (const InputError& error) {
    trial.error = error.what();
    trial.failed_node = last + 1;
    while (trial.failed_node < int(graph.nodes.size()) && !needed[size_t(trial.failed_node)]) ++trial.failed_node;
  }
  return trial;
}

/// Sizes that the file leaves open are tried in turn until the network runs.
Trial find_shapes(const Graph& graph, ValueId output, const Shapes& given) {
  const bool images = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId id) {
    const auto& shape = graph.values[size_t(id)].shape;
    return shape && shape->size() == 4;
  });
  Trial first;
  for (int64_t free :
       images ? std::vector<int64_t>{224, 64, 32, 28, 299, 640} : std::vector<int64_t>{16, 1, 64, 128, 512}) {
    Trial trial = try_shapes(graph, output, given, free);
    if (trial.error.empty() || trial.free == 0) return trial;
    if (first.free == 0) first = trial;
  }
  return first;
}

/// From an input to the node that fails, following each node's largest operand.
std::vector<NodeInfo> chain_to_failure(const Graph& graph, const Trial& trial) {
  const std::vector<int> made_by = model::producers(graph);
  std::vector<NodeInfo> chain;
  std::set<int> passed;
  for (int node = trial.failed_node; node >= 0 && node < int(graph.nodes.size()) && passed.insert(node).second;) {
    const Node& at = graph.nodes[size_t(node)];
    const bool ran = !at.outputs.empty() && trial.shapes.count(at.outputs[0]);
    chain.push_back({at.name, at.op, ran ? trial.shapes.at(at.outputs[0]) : Shape{}});
    ValueId from = kAbsent;
    for (ValueId id : at.inputs)
      if (id != kAbsent && !graph.is_constant(id) && trial.shapes.count(id) &&
          (from == kAbsent || model::checked_count(trial.shapes.at(id)) > model::checked_count(trial.shapes.at(from))))
        from = id;
    if (from == kAbsent) break;
    node = made_by[size_t(from)];
    if (node < 0) chain.push_back({graph.values[size_t(from)].name, "input", trial.shapes.at(from)});
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

DeclaredValue declared(const Graph& graph, ValueId id, const Trial& trial) {
  const model::Value& value = graph.values[size_t(id)];
  DeclaredValue out;
  out.name = value.name, out.type = model::element_name(value.type), out.has_shape = value.shape.has_value();
  if (value.shape)
    for (const model::Dim& dim : *value.shape) out.sizes.push_back(dim.size), out.symbols.push_back(dim.symbol);
  if (auto hit = trial.shapes.find(id); hit != trial.shapes.end()) out.tried_shape = hit->second;
  out.layout = model::image_layout(value);
  return out;
}

std::string output_kind(executor::OutputKind kind) {
  const char* words[] = {"logits or scores", "probabilities", "log-probabilities", "independent probabilities"};
  return words[int(kind)];
}

std::vector<NodeInfo> nodes_that_ran(const Graph& graph, const std::vector<model::Layer>& layers, const Trial& trial) {
  std::map<int, int> by_node;
  for (size_t l = 0; l < layers.size(); ++l) by_node[layers[l].node] = int(l);
  std::vector<NodeInfo> ran;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.outputs.empty() || node.outputs[0] == kAbsent || !trial.shapes.count(node.outputs[0])) continue;
    NodeInfo one{node.name, node.op, trial.shapes.at(node.outputs[0])};
    if (auto layer = by_node.find(int(n)); layer != by_node.end()) one.layer = layer->second;
    for (ValueId id : node.inputs)
      if (id != kAbsent && trial.shapes.count(id)) {
        one.reshapes = trial.shapes.at(id) != one.shape;
        break;
      }
    one.flops = trial.flops.at(int(n));
    for (ValueId id : node.outputs)
      if (auto made = trial.bytes.find(id); made != trial.bytes.end()) one.output_bytes += made->second;
    for (ValueId id : node.inputs)
      if (id != kAbsent && graph.is_constant(id)) one.weight_bytes += double(graph.constant(id).nbytes());
    ran.push_back(std::move(one));
  }
  return ran;
}

/// The most bytes that are needed at one time: a value from the node that makes it to the last one that reads it, or a
/// view of it.
double most_at_once(const Graph& graph, const Trial& trial) {
  std::map<ValueId, int> last_use;
  auto use = [&](ValueId id, int node) {
    for (auto base = trial.view_of.find(id); base != trial.view_of.end(); base = trial.view_of.find(id))
      id = base->second;
    if (trial.bytes.count(id)) last_use[id] = std::max(last_use.emplace(id, node).first->second, node);
  };
  const int end = int(graph.nodes.size());
  for (int n = 0; n < end; ++n) {
    if (!trial.flops.count(n)) continue;
    for (ValueId id : graph.nodes[size_t(n)].inputs) use(id, n);
    for (ValueId id : graph.nodes[size_t(n)].outputs) use(id, n);
  }
  for (ValueId id : graph.outputs) use(id, end);
  const std::vector<int> made_by = model::producers(graph);
  std::vector<double> change(size_t(end) + 2, 0.0);  // at each node; inputs are there from the first on
  for (const auto& [id, last] : last_use) {
    change[size_t(std::max(0, made_by[size_t(id)]))] += trial.bytes.at(id);
    change[size_t(last) + 1] -= trial.bytes.at(id);
  }
  double now = 0, most = 0;
  for (double bytes : change) most = std::max(most, now += bytes);
  return most;
}

ModelCost cost_of(const Graph& graph, const Trial& trial) {
  ModelCost cost;
  std::set<ValueId> read;
  for (const auto& [node, flops] : trial.flops) {
    cost.flops += flops;
    for (ValueId id : graph.nodes[size_t(node)].inputs)
      if (id != kAbsent && graph.is_constant(id) && read.insert(id).second)
        cost.weight_bytes += double(graph.constant(id).nbytes());
  }
  cost.activation_bytes = most_at_once(graph, trial);
  return cost;
}

int64_t weighted_inside(const Node& node) {
  int64_t count = 0;
  for (const auto& [name, value] : node.attributes) {
    const auto* body = std::get_if<model::Subgraph>(&value);
    if (!body || !body->graph) continue;
    for (const Node& inner : body->graph->nodes) {
      const ops::Op* op = ops::find(inner.domain, inner.op);
      count += (op && op->kind == ops::Kind::kLinear) + weighted_inside(inner);
    }
  }
  return count;
}

std::vector<InsideInfo> inside_nodes(const Graph& graph) {
  std::vector<InsideInfo> found;
  for (const Node& node : graph.nodes) {
    InsideInfo info{node.name, node.op, weighted_inside(node), 0};
    for (size_t i = node.inputs.size() - node.captured; i < node.inputs.size(); ++i)
      if (at::Tensor value = graph.constant(node.inputs[i]); value.defined() && value.is_floating_point())
        info.constants += value.numel();
    if (info.weighted > 0) found.push_back(std::move(info));
  }
  return found;
}

}  // namespace

ModelInfo describe_model(const std::string& path, const std::string& output, const std::vector<std::string>& shapes) {
  const Graph graph = onnx::read_model(path);
  const ValueId upto = output.empty() ? kAbsent : choose_output(graph, output);
  const Shapes given = parse_shapes(shapes);
  require_inputs(graph, given);
  const std::vector<model::Layer> layers = executor::find_layers(graph);
  ModelInfo info;
  Trial trial;
  try {
    const ops::LoopLimit limit(kSecondsOfLoops);
    trial = find_shapes(graph, upto, given);
  } catch (const Unsupported& error) {  // what is known is told all the same
    info.unsupported = error.what(), info.hint = error.hint();
  }
  for (ValueId id : executor::find_parameters(graph)) info.parameters += graph.constant(id).numel();
  info.nodes = int64_t(graph.nodes.size());
  info.opset = graph.opsets.count("") ? graph.opsets.at("") : 0;
  info.producer = graph.producer;
  for (ValueId id : graph.inputs) info.inputs.push_back(declared(graph, id, trial));
  for (ValueId id : graph.outputs) {
    info.outputs.push_back(declared(graph, id, trial));
    info.outputs.back().output_kind = output_kind(executor::find_head(graph, id).output_kind);
  }
  for (const model::Layer& layer : layers) {
    const auto shape = trial.shapes.find(layer.post);
    info.layers.push_back({layer.name, layer.op, layer.activation, layer.units, layer.parameters,
                           shape != trial.shapes.end(), shape != trial.shapes.end() ? shape->second : Shape{}});
  }
  info.ran = nodes_that_ran(graph, layers, trial);
  info.inside = inside_nodes(graph);
  for (const Node& node : graph.nodes) ++info.operators[node.domain.empty() ? node.op : node.domain + "." + node.op];
  info.metadata = graph.metadata;
  info.free_size = trial.free;
  info.error = trial.error;
  trial.error.empty() ? void(info.cost = cost_of(graph, trial)) : void(info.chain = chain_to_failure(graph, trial));
  return info;
}

}  // namespace netmend::session
