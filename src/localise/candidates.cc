#include "localise/candidates.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "executor/executor.h"

namespace netmend::localise {
namespace {

using model::Layer;

/// Nodes that lie between the last layers and the output, and the nodes of those layers.
std::vector<bool> behind_layers(const model::Graph& graph, const std::vector<Layer>& layers, model::ValueId output) {
  std::vector<int> made_by = model::producers(graph);
  std::vector<bool> is_layer(graph.nodes.size()), seen(graph.nodes.size());
  for (const Layer& layer : layers) is_layer[size_t(layer.node)] = true;
  std::vector<model::ValueId> open{output};
  while (!open.empty()) {
    model::ValueId id = open.back();
    open.pop_back();
    int maker = id == model::kAbsent ? -1 : made_by[size_t(id)];
    if (maker < 0 || seen[size_t(maker)]) continue;
    seen[size_t(maker)] = true;
    if (is_layer[size_t(maker)]) continue;
    for (model::ValueId input : graph.nodes[size_t(maker)].inputs) open.push_back(input);
  }
  return seen;
}

std::vector<Layer> named_layers(const std::vector<Layer>& layers, const std::vector<std::string>& names) {
  std::vector<std::string> there;
  for (const Layer& layer : layers) there.push_back(layer.name);
  for (const std::string& name : names)
    if (std::find(there.begin(), there.end(), name) == there.end())
      throw InputError(fmt::format("the model has no layer `{}`{}", printable(name), did_you_mean(name, there)),
                       there.size() <= 12 ? "Its layers are " + join(there, ", ") + "." : "netmend info lists them.");
  std::vector<Layer> chosen;
  for (const Layer& layer : layers)
    if (std::find(names.begin(), names.end(), layer.name) != names.end()) chosen.push_back(layer);
  return chosen;
}

}  // namespace

std::vector<Layer> candidates(const std::vector<Layer>& all, const model::Graph& graph, const executor::Head& head,
                              int64_t outputs, const std::vector<std::string>& names) {
  std::vector<bool> needed = executor::needed_nodes(graph, graph.inputs, std::vector<model::ValueId>{head.output});
  std::vector<Layer> layers;
  for (const Layer& layer : all)
    if (needed[size_t(layer.node)] && layer.units > 0) layers.push_back(layer);
  if (layers.empty())
    throw InputError("the model has no layers with weights between its inputs and the output that is judged",
                     "netmend info lists its layers and nodes.");
  if (!names.empty()) return named_layers(layers, names);
  std::vector<bool> last = behind_layers(graph, layers, head.output);
  std::vector<Layer> hidden;
  for (const Layer& layer : layers)
    if (!last[size_t(layer.node)] || layer.units != outputs) hidden.push_back(layer);
  return hidden.empty() ? layers : hidden;
}

}  // namespace netmend::localise
