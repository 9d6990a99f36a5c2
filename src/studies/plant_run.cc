#include "studies/plant_run.h"

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "edits/edit_file.h"
#include "executor/layers.h"
#include "faults/plant.h"
#include "onnx/writer.h"
#include "session/session.h"
#include "session/split.h"
#include "studies/poison.h"
#include "whatif/whatif.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;
using faults::Fault;

constexpr int kMostDraws = 200;

/// What it costs on the tests.
void judge(session::Session& session, const Fault& fault, PlantedFault& planted) {
  whatif::WhatIf whatif(session.test().subject, session.task(), session.layers(), {.jobs = session.request().jobs});
  std::vector<whatif::Question> questions(2);
  questions[1].edits = fault.edits;
  const std::vector<whatif::Tally> found = whatif::tally(whatif, session.task(), questions);
  session.record(session.test(), "cost of the fault", session.test().used());
  planted.judged = true, planted.before = found[0].accuracy(), planted.after = found[1].accuracy();
}

void check_request(session::Session& session, const PlantRequest& request, const faults::Kind& kind) {
  if (!session.has_data() && (kind.of == faults::Kind::kTraining || request.at_least > 0))
    throw InputError(fmt::format("{} needs data", request.at_least > 0 ? "--at-least" : request.kind),
                     "Give --data, for example --data mnist:train.");
  std::error_code none;
  if (std::filesystem::equivalent(session.model_name(), request.product, none))
    throw InputError(fmt::format("{} is the sound model itself", request.product), "Give -o another name.");
  if (!session.has_data()) return;
  const observers::PredictionSettings& task = session.task();
  if (task.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels", session.test().data->info().spec), "Give data with labels.");
  if (request.at_least > 0 && !task.has_right_and_wrong())
    throw InputError("--at-least needs predictions that are right or wrong",
                     "Say in netmend.toml which error still counts as correct: goal.tolerance = 0.5");
}

void write_truth(const std::string& model, const model::Graph& graph, const PlantRequest& request, const Fault& fault,
                 const PlantedFault& planted) {
  Json whole = to_json(model, request, planted);
  const edits::EditFile file = edits::describe(graph, fault.edits, model, file_checksum(model));
  whole["edits"] = JsonDocument(edits::to_text(file), request.truth, {.bytes = int64_t(1) << 30}).json()["edits"];
  write_file(request.truth, json_text(whole, 2) + "\n");
}

}  // namespace

PlantedFault plant(session::Session& session, const PlantRequest& request) {
  const faults::Kind& kind = faults::find_kind(request.kind);
  check_request(session, request, kind);
  const model::Graph& graph = session.graph();
  const std::vector<model::Layer> layers = session.has_data() ? session.layers() : executor::find_layers(graph);
  PlantedFault planted;
  Fault fault;
  planted.seed = session.request().seed;
  for (int draw = 0;; ++draw, ++planted.seed) {
    if (kind.of == faults::Kind::kTraining) {
      Poisoned poisoned = poison_labels(session.model_name(), graph, session.head().output, session.test().subject.data,
                                        session.task().classes, request.strength, planted.seed, session.request().jobs);
      fault = std::move(poisoned.fault), planted.classes = std::move(poisoned.classes);
    } else {
      fault = faults::plant(graph, layers, kind, {request.count, request.strength, request.layer, planted.seed});
    }
    if (session.has_data()) judge(session, fault, planted);
    if (!(request.at_least > 0) || (planted.points() >= request.at_least && planted.points() <= request.at_most)) break;
    if (draw == kMostDraws || kind.of == faults::Kind::kTraining)
      throw InputError(fmt::format("no {} of {} tried costs {:g} points of accuracy: many damaged units cost nothing",
                                   kind.name, draw + 1, request.at_least),
                       "Try a larger --strength or --count, or a smaller --at-least.");
  }
  planted.kind = fault.kind, planted.layer = fault.layer, planted.units = fault.units;
  planted.edits = int64_t(fault.edits.size());
  model::Graph faulty = graph;
  edits::apply(faulty, fault.edits);
  onnx::write_model(faulty, request.product);
  if (!request.truth.empty()) write_truth(session.model_name(), graph, request, fault, planted);
  return planted;
}

Json to_json(const std::string& model, const PlantRequest& request, const PlantedFault& fault) {
  Json json = {
      {"model", model},       {"checksum", file_checksum(model)}, {"kind", fault.kind}, {"units", fault.units},
      {"layer", fault.layer}, {"classes", fault.classes},         {"seed", fault.seed}, {"strength", request.strength}};
  if (fault.judged)
    json["accuracy_before"] = fault.before, json["accuracy_after"] = fault.after, json["points_lost"] = fault.points();
  return json;
}

}  // namespace netmend::studies
