// netmend info: what the file holds, the shape at every stage, and where shapes cannot fit, the way that leads there.
#include <ATen/ATen.h>

#include <set>

#include "base/error.h"
#include "base/text.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "netmend/shared.h"
#include "onnx/reader.h"

namespace netmend::app {
namespace {

using model::Graph;
using model::kAbsent;
using model::Layer;
using model::Node;
using model::ValueId;
using Shape = std::vector<int64_t>;

std::string declared_text(const model::Value& value) {
  if (!value.shape) return "?";
  std::string text;
  for (const model::Dim& dim : *value.shape)
    text += (text.empty() ? "" : "×") + (dim.size >= 0        ? std::to_string(dim.size)
                                         : dim.symbol.empty() ? "?"
                                                              : dim.symbol);
  return text.empty() ? "scalar" : text;
}

/// `N×H×W×C ` before the sizes of an image.
std::string axes_text(const model::Value& value) {
  std::string text;
  for (char axis : image_layout(value)) text += (text.empty() ? "" : "×") + std::string(1, axis);
  return text.empty() ? "" : text + " ";
}

std::map<std::string, Shape> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const std::string& text : texts) {
    size_t equals = text.rfind('=');
    if (equals == std::string::npos) fail("--shape {}: expected NAME=1x3x224x224", text);
    for (const std::string& part : split(text.substr(equals + 1), 'x')) {
      int64_t size = 0;
      if (!parse_int(part, size) || size < 0) fail("--shape {}: '{}' is no size", text, part);
      shapes[text.substr(0, equals)].push_back(size);
    }
  }
  return shapes;
}

/// Sizes to try an input with: the file's own, 1 for the batch, `free` for what the file leaves open.
Shape trial_shape(const model::Value& value, int64_t free) {
  Shape shape;
  if (!value.shape) return {1, free};
  for (size_t axis = 0; axis < value.shape->size(); ++axis) {
    int64_t size = (*value.shape)[axis].size;
    shape.push_back(size >= 0 ? size : axis == 0 ? 1 : free);
  }
  return shape;
}

at::Tensor trial_input(const model::Value& value, const Shape& shape) {
  if (model::checked_count(shape) < 0) fail("input {} has impossible sizes {}", value.name, shape_text(shape));
  at::TensorOptions options = at::TensorOptions().dtype(model::carrier(value.type));
  bool mask = lower(value.name).find("mask") != std::string::npos;
  return mask ? at::ones(shape, options) : at::zeros(shape, options);
}

/// What a trial run showed: the shape of every value that was made, and the failure if there was one.
struct Trial {
  std::map<ValueId, Shape> shapes;
  std::string error;
  int failed_node = -1;
  int64_t free = 0;  ///< size taken for what the file leaves open; 0 when nothing is open
};

Trial try_shapes(const Graph& graph, ValueId output, const std::map<std::string, Shape>& given, int64_t free) {
  Trial trial;
  executor::Request request;
  if (output != kAbsent) request.wanted = {output};
  request.mode = executor::Mode::kPlain;
  executor::Executor executor(graph, request);
  std::vector<at::Tensor> inputs;
  for (ValueId id : graph.inputs) {
    const model::Value& value = graph.values[size_t(id)];
    auto hit = given.find(value.name);
    Shape shape = hit != given.end() ? hit->second : trial_shape(value, free);
    for (size_t axis = 1; value.shape && hit == given.end() && axis < value.shape->size(); ++axis)
      if ((*value.shape)[axis].size < 0) trial.free = free;
    trial.shapes[id] = shape;
    inputs.push_back(trial_input(value, shape));
  }
  std::vector<bool> needed =
      executor::needed_nodes(graph, graph.inputs, request.wanted.empty() ? graph.outputs : request.wanted);
  int last = -1;
  executor::RunOptions run;
  run.trace = [&](int node, std::span<const at::Tensor>, std::span<const at::Tensor> outputs) {
    last = node;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].defined() && graph.nodes[size_t(node)].outputs[i] != kAbsent)
        trial.shapes[graph.nodes[size_t(node)].outputs[i]] = outputs[i].sizes().vec();
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
Trial find_shapes(const Graph& graph, ValueId output, const std::map<std::string, Shape>& given) {
  bool images = false;
  for (ValueId id : graph.inputs)
    images = images || (graph.values[size_t(id)].shape && graph.values[size_t(id)].shape->size() == 4);
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
void print_chain(const Graph& graph, const Trial& trial) {
  std::vector<int> made_by = model::producers(graph);
  std::vector<std::string> lines;
  int node = trial.failed_node;
  for (int guard = 0; node >= 0 && node < int(graph.nodes.size()) && guard < 10000; ++guard) {
    const Node& at = graph.nodes[size_t(node)];
    std::string shape =
        at.outputs.empty() || !trial.shapes.count(at.outputs[0]) ? "✗" : shape_text(trial.shapes.at(at.outputs[0]));
    lines.push_back(fmt::format("  {:<40} {:<20} {}", at.name, at.op, shape));
    ValueId from = kAbsent;
    for (ValueId id : at.inputs)
      if (id != kAbsent && !graph.is_constant(id) && trial.shapes.count(id) &&
          (from == kAbsent || model::checked_count(trial.shapes.at(id)) > model::checked_count(trial.shapes.at(from))))
        from = id;
    if (from == kAbsent) break;
    node = made_by[size_t(from)];
    if (node < 0)
      lines.push_back(fmt::format("  {:<40} {:<20} {}", graph.values[size_t(from)].name, "input",
                                  shape_text(trial.shapes.at(from))));
  }
  fmt::print("\nThe shapes on the way to it:\n");
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) fmt::print("{}\n", *line);
}

int64_t count_parameters(const Graph& graph) {
  int64_t count = 0;
  for (ValueId id : executor::find_parameters(graph)) count += graph.constant(id).numel();
  return count;
}

Json values_json(const Graph& graph, const std::vector<ValueId>& ids, const Trial& trial) {
  Json list = Json::array();
  for (ValueId id : ids) {
    const model::Value& value = graph.values[size_t(id)];
    Json shape = Json::array();
    if (value.shape)
      for (const model::Dim& dim : *value.shape)
        shape.push_back(dim.size >= 0 ? Json(dim.size) : dim.symbol.empty() ? Json(nullptr) : Json(dim.symbol));
    else if (trial.shapes.count(id))
      shape = trial.shapes.at(id);
    list.push_back({{"name", value.name}, {"type", model::element_name(value.type)}, {"shape", shape}});
  }
  return list;
}

Json info_json(const Graph& graph, const std::vector<Layer>& layers, const Trial& trial) {
  Json json = {{"parameters", count_parameters(graph)},
               {"inputs", values_json(graph, graph.inputs, trial)},
               {"outputs", values_json(graph, graph.outputs, trial)},
               {"nodes", graph.nodes.size()},
               {"opset", graph.opsets.count("") ? graph.opsets.at("") : 0},
               {"producer", graph.producer},
               {"layers", Json::array()}};
  for (const Layer& layer : layers) {
    Json shape = trial.shapes.count(layer.post) ? Json(trial.shapes.at(layer.post)) : Json(nullptr);
    json["layers"].push_back({{"name", layer.name},
                              {"op", layer.op},
                              {"units", layer.units},
                              {"parameters", layer.parameters},
                              {"output_shape", shape},
                              {"activation", layer.activation}});
  }
  std::map<std::string, int> operators;
  for (const Node& node : graph.nodes) ++operators[node.domain.empty() ? node.op : node.domain + "." + node.op];
  json["operators"] = operators;
  json["metadata"] = graph.metadata;
  if (!trial.error.empty()) json["error"] = trial.error;
  return json;
}

void print_stages(const Graph& graph, const std::vector<Layer>& layers, const Trial& trial, bool every_node) {
  std::map<int, const Layer*> by_node;
  size_t width = 8;
  for (const Layer& layer : layers) by_node[layer.node] = &layer, width = std::max(width, layer.name.size());
  width = std::min<size_t>(width, 48);
  fmt::print("\n  {:<{}}  {:<18} {:<18} {:>6} {:>12}  {}\n", "stage", width, "operator", "shape", "units", "parameters",
             "activation");
  for (ValueId id : graph.inputs)
    fmt::print("  {:<{}}  {:<18} {}\n", graph.values[size_t(id)].name, width, "input",
               trial.shapes.count(id) ? shape_text(trial.shapes.at(id)) : declared_text(graph.values[size_t(id)]));
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.outputs.empty() || node.outputs[0] == kAbsent || !trial.shapes.count(node.outputs[0])) continue;
    const Shape& shape = trial.shapes.at(node.outputs[0]);
    auto layer = by_node.find(int(n));
    bool reshapes = false;
    for (ValueId id : node.inputs)
      if (id != kAbsent && trial.shapes.count(id)) {
        reshapes = trial.shapes.at(id) != shape;
        break;
      }
    // `×` is two bytes and one column wide: pad by hand.
    std::string text = shape_text(shape);
    size_t columns = text.size() - (shape.empty() ? 0 : shape.size() - 1);
    text += std::string(columns < 18 ? 18 - columns : 0, ' ');
    if (layer != by_node.end())
      fmt::print("  {:<{}}  {:<18} {} {:>6} {:>12}  {}\n", layer->second->name, width, node.op, text,
                 layer->second->units, with_commas(layer->second->parameters), layer->second->activation);
    else if (every_node || (reshapes && shape.size() > 1))
      fmt::print("  {:<{}}  {:<18} {}\n", every_node ? node.name : "", width, node.op, text);
  }
}

void print_info(const Graph& graph, const InfoOptions& options, const std::vector<Layer>& layers, const Trial& trial) {
  int64_t units = 0;
  for (const Layer& layer : layers) units += layer.units;
  fmt::print("{}  {} layers · {} units · {} parameters · {} nodes · opset {}{}\n", options.model, layers.size(),
             with_commas(units), with_commas(count_parameters(graph)), graph.nodes.size(),
             graph.opsets.count("") ? graph.opsets.at("") : 0, graph.producer.empty() ? "" : " · " + graph.producer);
  for (ValueId id : graph.inputs)
    fmt::print("  input   {}  {} {}{}\n", graph.values[size_t(id)].name,
               model::element_name(graph.values[size_t(id)].type), axes_text(graph.values[size_t(id)]),
               declared_text(graph.values[size_t(id)]));
  for (ValueId id : graph.outputs) {
    const char* gives[] = {"logits or scores", "probabilities", "log probabilities", "probabilities, each by itself"};
    fmt::print("  output  {}  {} {}  gives {}\n", graph.values[size_t(id)].name,
               model::element_name(graph.values[size_t(id)].type), declared_text(graph.values[size_t(id)]),
               gives[int(executor::find_head(graph, id).output_kind)]);
  }
  if (trial.free)
    fmt::print("  sizes that the file leaves open are shown for {} (--shape NAME=… sets them)\n", trial.free);
  print_stages(graph, layers, trial, options.nodes);
}

}  // namespace

int info(const Common& common, const InfoOptions& options) {
  // Listing shapes runs the network on one input; that should not fill the machine.
  if (common.memory.empty()) executor::start_runtime(std::min(executor::memory_budget(), int64_t(4) << 30));
  Graph graph = onnx::read_model(options.model);
  ValueId output = options.output.empty() ? kAbsent : choose_output(graph, options.output);
  std::vector<Layer> layers = executor::find_layers(graph);
  Trial trial;
  std::exception_ptr refused;
  try {
    trial = find_shapes(graph, output, parse_shapes(options.shapes));
  } catch (const Unsupported&) {
    refused = std::current_exception();  // what is known is shown first, then all that cannot run is named
  }
  if (common.json)
    print_json(info_json(graph, layers, trial));
  else
    print_info(graph, options, layers, trial);
  if (refused) std::rethrow_exception(refused);
  if (trial.error.empty()) return 0;
  if (!common.json) print_chain(graph, trial);
  throw InputError(fmt::format("{}: {}", options.model, trial.error));
}

}  // namespace netmend::app
