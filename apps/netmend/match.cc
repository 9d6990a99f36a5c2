// netmend match: does the file answer as the framework did, and where and why not.
#include "stream/match.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "netmend/shared.h"
#include "onnx/reader.h"
#include "stream/input_fit.h"

namespace netmend::app {
namespace {

using stream::InputFit;
using stream::LayerMatch;
using stream::Match;
using stream::OutputMatch;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json match_json(const Match& match, const std::optional<InputFit>& fit) {
  Json json = {{"inputs", match.inputs}, {"outputs", Json::array()}, {"layers", Json::array()}};
  for (const OutputMatch& output : match.outputs)
    json["outputs"].push_back(
        {{"name", output.name},
         {"max", number(output.difference.max)},
         {"mean", number(output.difference.mean)},
         {"relative", number(output.difference.relative)},
         {"answers_differ", output.answers_differ ? Json(*output.answers_differ) : Json(nullptr)}});
  for (const LayerMatch& layer : match.layers)
    json["layers"].push_back({{"name", layer.name},
                              {"layer", layer.layer.empty() ? Json(nullptr) : Json(layer.layer)},
                              {"operator", layer.op},
                              {"max", number(layer.difference.max)},
                              {"mean", number(layer.difference.mean)},
                              {"relative", number(layer.difference.relative)},
                              {"alone", layer.alone < 0 ? Json(nullptr) : number(layer.alone)},
                              {"folded", layer.folded},
                              {"departs", layer.departs}});
  json["first_departure"] = match.first_departure.empty() ? Json(nullptr) : Json(match.first_departure);
  if (fit)
    json["preprocessing"] = {{"equal", fit->equal},
                             {"max", number(fit->max)},
                             {"config", fit->config.empty() ? Json(nullptr) : Json(fit->config)}};
  json["reason"] = match.reason;
  json["notes"] = match.notes;
  json["matches"] = match.matches;
  return json;
}

/// `×` is two bytes and one column wide.
std::string shape_column(const std::vector<int64_t>& shape, size_t width) {
  std::string text = shape_text(shape);
  const size_t columns = text.size() - (shape.empty() ? 0 : shape.size() - 1);
  return text + std::string(columns < width ? width - columns : 0, ' ');
}

void print_outputs(const Match& match) {
  fmt::print("\n  {:<24} {:>10} {:>10} {:>10}  answers that differ\n", "output", "max", "mean", "relative");
  for (const OutputMatch& output : match.outputs)
    fmt::print("  {:<24} {:>10.2e} {:>10.2e} {:>10.2e}  {}\n", printable(output.name), output.difference.max,
               output.difference.mean, output.difference.relative,
               output.answers_differ ? fmt::format("{:.2f} %", 100 * *output.answers_differ) : "");
}

void print_layers(const Match& match) {
  size_t width = 8;
  for (const LayerMatch& layer : match.layers) width = std::max(width, std::min<size_t>(layer.name.size(), 40));
  fmt::print("\n  {:<{}}  {:<18} {:>10} {:>10} {:>10}  netmend's layer\n", "layer", width, "shape", "max", "mean",
             "relative");
  for (const LayerMatch& layer : match.layers) {
    if (layer.layer.empty()) {
      fmt::print("  {:<{}}  {} nothing of this shape is in the file\n", printable(layer.name), width,
                 shape_column(layer.shape, 18));
      continue;
    }
    if (layer.folded) {
      fmt::print("  {:<{}}  {} {:>32}  {}  (batch norm is folded into it: the next tells)\n", printable(layer.name),
                 width, shape_column(layer.shape, 18), "", printable(layer.layer));
      continue;
    }
    const bool first = layer.name == match.first_departure;
    fmt::print("  {:<{}}  {} {:>10.2e} {:>10.2e} {:>10.2e}  {}{}\n", printable(layer.name), width,
               shape_column(layer.shape, 18), layer.difference.max, layer.difference.mean, layer.difference.relative,
               printable(layer.layer), first ? "  ← departs here" : "");
  }
}

std::optional<InputFit> compare_data(const Common& common, const MatchOptions& options, const Config& config,
                                     const model::Graph& graph, const stream::Reference& reference) {
  auto data = open_data(common, test_spec(options.data, "", config), graph, config);
  return stream::compare_inputs(graph, options.model, reference, *data, options.tolerance);
}

/// The data of --data, or the test data that netmend.toml names; without either there is nothing to compare. What the
/// file names may not be on this machine, which only matters when it was asked for.
std::optional<InputFit> compare_any_data(const Common& common, const MatchOptions& options, const model::Graph& graph,
                                         const stream::Reference& reference) {
  Config config = read_config(common.config, options.model);
  if (!options.data.empty()) return compare_data(common, options, config, graph, reference);
  if (config.test.empty() || reference.samples.empty()) return {};
  try {
    return compare_data(common, options, config, graph, reference);
  } catch (const InputError& error) {
    say(common, fmt::format("the data of {} is not compared: {}", config.path, printable(error.what())));
    return {};
  }
}

void print_match(const MatchOptions& options, const stream::Reference& reference, const Match& match,
                 const std::optional<InputFit>& fit) {
  fmt::print("{} against {}  {} inputs{}\n", options.model, options.reference, with_commas(match.inputs),
             reference.framework.empty() ? "" : " · " + printable(reference.framework));
  for (const std::string& note : match.notes) fmt::print("  {}\n", printable(note));
  print_outputs(match);
  if (!match.layers.empty()) print_layers(match);
  if (fit && fit->equal) fmt::print("\n  inputs are prepared as in the framework (max difference {:.1e})\n", fit->max);
  fmt::print("\n  {}: {}\n", match.matches ? "matches" : "does not match", printable(match.reason));
  if (fit && !fit->config.empty()) fmt::print("  netmend.toml:  {}\n", fit->config);
}

}  // namespace

int match(const Common& common, const MatchOptions& options) {
  model::Graph graph = onnx::read_model(options.model);
  stream::Reference reference = stream::read_reference(options.reference);
  stream::MatchOptions settings;
  settings.tolerance = options.tolerance;
  settings.layers = options.layers;
  settings.device = at::Device(common.device);
  Match match = stream::compare_with_reference(graph, reference, settings);
  std::optional<InputFit> fit = compare_any_data(common, options, graph, reference);
  if (fit && !fit->equal) {
    match.reason = match.matches ? fit->explanation : fmt::format("{}; besides, {}", fit->explanation, match.reason);
    match.matches = false;
  }
  if (common.json)
    print_json(match_json(match, fit));
  else
    print_match(options, reference, match, fit);
  return match.matches ? 0 : 1;
}

}  // namespace netmend::app
