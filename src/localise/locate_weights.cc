// Single weights by Arachne's localisation, with the names that people know them by.
#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "edits/places.h"
#include "localise/arachne.h"
#include "localise/locate.h"
#include "session/session.h"
#include "session/split.h"
#include "session/target.h"

namespace netmend::localise {
namespace {

using Json = nlohmann::ordered_json;

/// The unit that a number of a layer's weights belongs to.
std::string owner(const model::Graph& graph, const model::Layer& layer, int64_t position) {
  for (const edits::Part& part : edits::find_parts(graph, layer).list) {
    if (part.role != edits::Role::kWeight || part.parameter != layer.weight) continue;
    for (int64_t unit = 0; unit < layer.units; ++unit) {
      std::vector<int64_t> own = part.positions(graph, unit);
      if (std::binary_search(own.begin(), own.end(), position)) return model::unit_name(layer, unit);
    }
  }
  return layer.name;
}

std::string index_text(at::IntArrayRef sizes, int64_t position) {
  std::vector<std::string> parts(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0; position /= sizes[axis])
    parts[axis] = std::to_string(position % sizes[axis]);
  return join(parts, ",");
}

std::vector<model::Layer> chosen_layers(session::Session& session, const std::vector<std::string>& names) {
  std::vector<model::Layer> layers = session.layers();
  if (names.empty()) return layers;
  std::vector<std::string> there;
  for (const model::Layer& layer : layers) there.push_back(layer.name);
  for (const std::string& name : names)
    if (std::find(there.begin(), there.end(), name) == there.end())
      throw InputError(fmt::format("the model has no layer `{}`{}", printable(name), did_you_mean(name, there)),
                       "Its layers are " + join(there, ", ") + ".");
  std::erase_if(layers, [&](const model::Layer& layer) {
    return std::find(names.begin(), names.end(), layer.name) == names.end();
  });
  return layers;
}

}  // namespace

WeightResult locate_weights(session::Session& session, const LocateRequest& request) {
  session::Split& test = session.test();
  const observers::PredictionSettings& task = session.task();
  if (!task.by_class())
    throw InputError("--measure arachne needs predictions that are classes",
                     "Other measures are listed by netmend locate --help.");
  const std::vector<model::Layer> layers = chosen_layers(session, request.layers);
  session.sample(test);
  session::NamedTarget target = session::parse_target(request.on, task, *test.subject.data);
  observers::Predictions predictions(task, true);
  stream::Pass pass(test.subject);
  auto handle = pass.watch(predictions);
  session.run(pass, test, "predictions");
  if (pass.interrupted()) throw Interrupted{};
  observers::PredictionState& state = pass.state(handle);
  std::vector<int64_t> sides[2];
  for (const observers::SampleRow& row : state.rows)
    if (auto side = target.target.side(row); side != observers::Side::kNeither)
      sides[size_t(side)].push_back(row.sample);
  WeightResult result;
  result.model = session.model_name(), result.data = test.data->info().spec;
  result.failing = int64_t(sides[0].size()), result.passing = int64_t(sides[1].size());
  session::require_both_sides(target, task, observers::finish(predictions, state), result.failing, result.passing);
  const auto front =
      arachne(test.subject, task, layers, sides[0], sides[1], session.request().jobs, &result.passed_over);
  const model::Graph& graph = test.subject.graph;
  for (const BlamedWeight& one : front) {
    const model::Layer& layer = layers[one.layer];
    at::Tensor weight = graph.constant(layer.weight);
    result.weights.push_back({owner(graph, layer, one.position), layer.name, graph.values[size_t(layer.weight)].name,
                              index_text(weight.sizes(), one.position),
                              weight.contiguous().view(-1)[one.position].item<double>(), one.impact, one.gradient});
  }
  result.next = {session.command("repair", {"--method", "arachne", "-o", "fixed.onnx"})};
  result.seconds = pass.seconds();
  return result;
}

Json to_json(const WeightResult& result) {
  Json list = Json::array();
  for (const LocatedWeight& one : result.weights)
    list.push_back({{"unit", one.unit},
                    {"layer", one.layer},
                    {"parameter", one.parameter},
                    {"index", one.index},
                    {"value", one.value},
                    {"impact", one.impact},
                    {"gradient", one.gradient}});
  return {{"measure", "arachne"},
          {"model", result.model},
          {"data", result.data},
          {"failures", result.failing},
          {"passes", result.passing},
          {"weights", std::move(list)},
          {"passed_over", result.passed_over},
          {"next", result.next}};
}

}  // namespace netmend::localise
