// netmend match: does the model predict as the framework did that trained it, and where and why not.
#include "session/match.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "netmend/show.h"
#include "observers/figures.h"

namespace netmend::app {
namespace {

using observers::number_json;
using session::ReferenceMatch;
using stream::InputFit;
using stream::LayerMatch;
using stream::Match;
using stream::OutputMatch;

Json match_json(const Match& match, const std::optional<InputFit>& fit) {
  Json json = {{"inputs", match.inputs}, {"outputs", Json::array()}, {"layers", Json::array()}};
  for (const OutputMatch& output : match.outputs)
    json["outputs"].push_back(
        {{"name", output.name},
         {"max", number_json(output.difference.max)},
         {"mean", number_json(output.difference.mean)},
         {"relative", number_json(output.difference.relative)},
         {"predictions_differ", output.predictions_differ ? Json(*output.predictions_differ) : Json(nullptr)}});
  for (const LayerMatch& layer : match.layers)
    json["layers"].push_back({{"name", layer.name},
                              {"layer", layer.layer.empty() ? Json(nullptr) : Json(layer.layer)},
                              {"operator", layer.op},
                              {"max", number_json(layer.difference.max)},
                              {"mean", number_json(layer.difference.mean)},
                              {"relative", number_json(layer.difference.relative)},
                              {"alone", layer.alone < 0 ? Json(nullptr) : number_json(layer.alone)},
                              {"folded", layer.folded},
                              {"departs", layer.departs}});
  json["first_departure"] = match.first_departure.empty() ? Json(nullptr) : Json(match.first_departure);
  if (fit)
    json["preprocessing"] = {{"equal", fit->equal},
                             {"max", number_json(fit->max)},
                             {"config", fit->config.empty() ? Json(nullptr) : Json(fit->config)}};
  json["reason"] = match.reason;
  json["notes"] = match.notes;
  json["matches"] = match.matches;
  json["repaired"] = match.repaired;
  return json;
}

void print_outputs(const Match& match) {
  Table table{{"output", "max", "mean", "relative", "predictions that differ"}, "lrrrr"};
  for (const OutputMatch& output : match.outputs)
    table.rows.push_back({output.name, fmt::format("{:.2e}", output.difference.max),
                          fmt::format("{:.2e}", output.difference.mean),
                          fmt::format("{:.2e}", output.difference.relative),
                          output.predictions_differ ? fmt::format("{:.2f} %", 100 * *output.predictions_differ) : ""});
  print("\n");
  print_table(table);
}

void print_layers(const Match& match) {
  Table table{{"layer", "shape", "max", "mean", "relative", "netmend's layer"}, "llrrrl"};
  for (const LayerMatch& layer : match.layers) {
    if (layer.layer.empty()) {
      table.rows.push_back({layer.name, shape_text(layer.shape), "", "", "", "(no value of this shape in the file)"});
      continue;
    }
    if (layer.folded) {
      table.rows.push_back({layer.name, shape_text(layer.shape), "", "", "",
                            layer.layer + " (batch norm is folded into it: see the next layer)"});
      continue;
    }
    const bool first = layer.name == match.first_departure;
    table.rows.push_back({layer.name, shape_text(layer.shape), fmt::format("{:.2e}", layer.difference.max),
                          fmt::format("{:.2e}", layer.difference.mean),
                          fmt::format("{:.2e}", layer.difference.relative),
                          layer.layer + (first ? "  ← begins to differ here" : "")});
  }
  print("\n");
  print_table(table);
}

/// Against a reference from before its repair a model is judged by what the repair left alone.
bool accepted(const ReferenceMatch& found) {
  return found.match.matches || (found.match.repaired && (!found.inputs || found.inputs->equal));
}

void print_match(const MatchOptions& options, const ReferenceMatch& found) {
  const Match& match = found.match;
  const std::optional<InputFit>& fit = found.inputs;
  print("{} against {}  {}{}\n", options.model, options.reference, counted(match.inputs, "input"),
        found.framework.empty() ? "" : " · " + printable(found.framework));
  for (const std::string& note : match.notes) print_wrapped(note, 2);
  print_outputs(match);
  if (!match.layers.empty()) print_layers(match);
  if (fit && fit->equal)
    print("\n  inputs are preprocessed as in the framework (largest difference {:.1e})\n", fit->max);
  print("\n");
  print_wrapped(fmt::format("{}: {}",
                            match.matches     ? "matches"
                            : accepted(found) ? "differs as a repaired model does (exit 0)"
                                              : "does not match (exit 1)",
                            match.reason),
                2);
  if (fit && !fit->config.empty()) print("  netmend.toml:  {}\n", fit->config);
}

}  // namespace

int match(const Common& common, const MatchOptions& options) {
  session::MatchRequest request;
  request.model = options.model, request.reference = options.reference, request.data = options.data;
  request.config = common.config;
  request.options.tolerance = options.tolerance, request.options.layers = options.layers;
  request.options.device = common.device;
  request.note = [&](const std::string& line) { say(common, printable(line)); };
  const ReferenceMatch found = session::match_reference(request);
  common.json ? print_json(match_json(found.match, found.inputs)) : print_match(options, found);
  return accepted(found) ? 0 : 1;
}

}  // namespace netmend::app
