// netmend info: what the file holds, the shape at every stage, and where shapes cannot fit, the way that leads there.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "netmend/show.h"
#include "session/model_info.h"

namespace netmend::app {
namespace {

using session::DeclaredValue;
using session::LayerInfo;
using session::ModelInfo;
using session::NodeInfo;

std::string declared_text(const DeclaredValue& value) {
  if (!value.has_shape) return "?";
  std::string text;
  for (size_t axis = 0; axis < value.sizes.size(); ++axis)
    text += (axis == 0 ? "" : "×") + (value.sizes[axis] >= 0        ? std::to_string(value.sizes[axis])
                                      : value.symbols[axis].empty() ? "?"
                                                                    : value.symbols[axis]);
  return text.empty() ? "scalar" : text;
}

/// `N×H×W×C ` before the sizes of an image.
std::string axes_text(const DeclaredValue& value) {
  std::string text;
  for (char axis : value.layout) text += (text.empty() ? "" : "×") + std::string(1, axis);
  return text.empty() ? "" : text + " ";
}

Json values_json(const std::vector<DeclaredValue>& values) {
  Json list = Json::array();
  for (const DeclaredValue& value : values) {
    Json shape = Json::array();
    for (size_t axis = 0; axis < value.sizes.size(); ++axis)
      shape.push_back(value.sizes[axis] >= 0        ? Json(value.sizes[axis])
                      : value.symbols[axis].empty() ? Json(nullptr)
                                                    : Json(value.symbols[axis]));
    if (!value.has_shape) shape = value.tried_shape;
    list.push_back({{"name", value.name}, {"type", value.type}, {"shape", shape}});
  }
  return list;
}

Json info_json(const ModelInfo& info) {
  Json json = {{"parameters", info.parameters},
               {"inputs", values_json(info.inputs)},
               {"outputs", values_json(info.outputs)},
               {"nodes", info.nodes},
               {"opset", info.opset},
               {"producer", info.producer},
               {"layers", Json::array()}};
  for (const LayerInfo& layer : info.layers)
    json["layers"].push_back({{"name", layer.name},
                              {"op", layer.op},
                              {"units", layer.units},
                              {"parameters", layer.parameters},
                              {"output_shape", layer.has_shape ? Json(layer.output_shape) : Json(nullptr)},
                              {"activation", layer.activation}});
  for (const session::InsideInfo& inside : info.inside)
    json["inside"].push_back({{"name", inside.name},
                              {"op", inside.op},
                              {"weighted_operators", inside.weighted},
                              {"constants", inside.constants}});
  json["operators"] = info.operators;
  if (info.error.empty() && !info.ran.empty()) {
    json["cost"] = {{"flops", info.cost.flops},
                    {"weight_bytes", info.cost.weight_bytes},
                    {"activation_bytes", info.cost.activation_bytes},
                    {"operators", Json::array()}};
    for (const NodeInfo& node : info.ran)
      json["cost"]["operators"].push_back({{"name", node.name},
                                           {"op", node.op},
                                           {"flops", node.flops},
                                           {"weight_bytes", node.weight_bytes},
                                           {"output_bytes", node.output_bytes}});
  }
  json["metadata"] = info.metadata;
  if (!info.error.empty()) json["error"] = info.error;
  return json;
}

void print_stages(const ModelInfo& info, bool every_node) {
  Table table{{"stage", "operator", "shape", "units", "parameters", "activation"}, "lllrrl"};
  for (const DeclaredValue& input : info.inputs)
    table.rows.push_back(
        {input.name, "input", input.tried_shape.empty() ? declared_text(input) : shape_text(input.tried_shape)});
  for (const NodeInfo& node : info.ran)
    if (node.layer >= 0) {
      const LayerInfo& layer = info.layers[size_t(node.layer)];
      table.rows.push_back({layer.name, node.op, shape_text(node.shape), with_commas(layer.units),
                            with_commas(layer.parameters), layer.activation});
    } else if (every_node || (node.reshapes && node.shape.size() > 1)) {
      table.rows.push_back({every_node ? node.name : "", node.op, shape_text(node.shape)});
    }
  print("\n");
  print_table(table);
}

void print_cost(const ModelInfo& info, bool every_node) {
  Table table{{"stage", "operator", "FLOP", "share", "weights", "output"}, "llrrrr"};
  for (const NodeInfo& node : info.ran)
    if (every_node || node.flops > 0)
      table.rows.push_back({node.layer >= 0 ? info.layers[size_t(node.layer)].name : node.name, node.op,
                            node.flops > 0 ? flops_text(node.flops) : "",
                            node.flops > 0 ? fmt::format("{:.1f} %", 100 * node.flops / info.cost.flops) : "",
                            node.weight_bytes > 0 ? bytes_text(node.weight_bytes) : "", bytes_text(node.output_bytes)});
  print("\n");
  print_table(table);
  print_wrapped(
      fmt::format("One pass with these shapes takes {} FLOP in products and reads {} of weights; its values take "
                  "at most {} at once. Nothing was timed (netmend lab benchmark does that).",
                  flops_text(info.cost.flops), bytes_text(info.cost.weight_bytes),
                  bytes_text(info.cost.activation_bytes)),
      0);
}

void print_info(const ModelInfo& info, const InfoOptions& options) {
  int64_t units = 0;
  for (const LayerInfo& layer : info.layers) units += layer.units;
  print_wrapped(
      fmt::format("{}  {} · {} · {} · {} · opset {}{}", options.model, counted(int64_t(info.layers.size()), "layer"),
                  counted(units, "unit"), counted(info.parameters, "parameter"), counted(info.nodes, "node"),
                  info.opset, info.producer.empty() ? "" : " · " + info.producer),
      0);
  for (const DeclaredValue& input : info.inputs)
    print("  input   {}  {} {}{}\n", printable(input.name), input.type, axes_text(input),
          printable(declared_text(input)));
  for (const DeclaredValue& output : info.outputs)
    print("  output  {}  {} {}  {}\n", printable(output.name), output.type, printable(declared_text(output)),
          output.output_kind);
  if (info.free_size)
    print("  sizes that the file leaves open are shown for {} (--shape NAME=… sets them)\n", info.free_size);
  print_stages(info, options.nodes);
  if (options.cost && info.error.empty() && !info.ran.empty()) print_cost(info, options.nodes);
  for (const session::InsideInfo& inside : info.inside)
    print_wrapped(fmt::format("Inside {} ({}) run {} with {} weights. They are not measured as layers: the input "
                              "decides which of them run, and how often.",
                              printable(inside.name), inside.op, counted(inside.weighted, "operator"),
                              with_commas(inside.constants)),
                  0);
}

void print_chain(const ModelInfo& info) {
  print("\nThe shapes on the way to it:\n");
  Table table{{"node", "operator", "shape"}, "lll"};
  for (const NodeInfo& node : info.chain)
    table.rows.push_back({node.name, node.op, node.shape.empty() ? "✗" : shape_text(node.shape)});
  print_table(table);
}

}  // namespace

int info(const Common& common, const InfoOptions& options) {
  // Listing shapes runs the network on one input; that should not fill the machine.
  if (common.memory.empty()) executor::start_runtime(std::min(executor::memory_budget(), int64_t(4) << 30));
  const ModelInfo info = session::describe_model(options.model, options.output, options.shapes);
  common.json ? print_json(info_json(info)) : print_info(info, options);
  if (!info.unsupported.empty()) throw Unsupported(info.unsupported, info.hint);
  if (info.error.empty()) return 0;
  if (!common.json) print_chain(info);
  throw InputError(fmt::format("{}: {}", options.model, info.error));
}

}  // namespace netmend::app
