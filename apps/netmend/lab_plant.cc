// netmend lab plant: a known fault in a sound model, and the truth about it beside.
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "dataset/relabelled.h"
#include "edits/difference.h"
#include "edits/edit_file.h"
#include "faults/plant.h"
#include "netmend/show.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "stream/layers.h"
#include "training/trainer.h"
#include "whatif/whatif.h"

namespace netmend::app {
namespace {

using faults::Fault;

/// What it costs on the data, in points of accuracy.
struct Cost {
  double before = NAN, after = NAN;
  double points() const { return 100 * (before - after); }
};

Cost cost_of(const Common& common, const Judged& judged, const std::vector<model::Layer>& layers, const Fault& fault) {
  whatif::WhatIf whatif(judged.subject, judged.settings, layers, {.jobs = common.jobs});
  std::vector<whatif::Question> questions(2);
  questions[1].edits = fault.edits;
  std::vector<whatif::Tally> found = whatif::tally(whatif, judged.settings, questions);
  return {found[0].accuracy(), found[1].accuracy()};
}

/// Trained for two more epochs with nine labels in ten of one class replaced by another.
Fault poison(const Common& common, const PlantOptions& options, const model::Graph& graph, const Case& about,
             std::string& classes) {
  if (about.judged.settings.classes.size() < 2)
    throw InputError("poisoned labels need classes", "Give a classifier and data with classes.");
  std::shared_ptr<const dataset::Dataset> data = about.judged.subject.data;
  std::vector<int64_t> labels = dataset::read_labels(*data);
  Random random(common.seed, 11);
  const auto& names = about.judged.settings.classes;
  const auto from = int64_t(random.below(names.size()));
  const auto to = int64_t((uint64_t(from) + 1 + random.below(names.size() - 1)) % names.size());
  for (int64_t& label : labels)
    if (label == from && random.uniform() < 0.9 * std::min(1.0, options.strength)) label = to;
  classes = fmt::format("{}:{}", names[size_t(from)], names[size_t(to)]);
  training::Task task{
      options.model, graph, about.judged.settings.head.output, dataset::relabelled(data, std::move(labels)),
      nullptr,       {}};
  task.options.epochs = 2, task.options.seed = common.seed, task.options.jobs = common.jobs;
  training::Trainer trainer(std::move(task));
  while (!trainer.done()) trainer.run_epoch();
  Fault fault{"poisoned-labels", {}, "", {}};
  fault.edits = edits::edits_between(graph, trainer.result(), executor::find_layers(graph));
  return fault;
}

Json truth_json(const PlantOptions& options, const Fault& fault, const std::string& classes, const Cost& cost,
                uint64_t seed) {
  Json json = {{"model", options.model}, {"checksum", file_checksum(options.model)},
               {"kind", fault.kind},     {"units", fault.units},
               {"layer", fault.layer},   {"classes", classes},
               {"seed", seed},           {"strength", options.strength}};
  if (std::isfinite(cost.before))
    json["accuracy_before"] = cost.before, json["accuracy_after"] = cost.after, json["points_lost"] = cost.points();
  return json;
}

void report(const Common& common, const PlantOptions& options, Json truth, const Fault& fault) {
  if (common.json) {
    truth["faulty"] = options.product;
    truth["edits"] = fault.edits.size();
    return print_json(truth);
  }
  std::string where = !fault.units.empty()   ? join(fault.units, ", ")
                      : !fault.layer.empty() ? fault.layer
                                             : "all layers";
  fmt::print("  {}: {} planted in {}{}\n", printable(options.product), fault.kind, printable(where),
             truth.contains("points_lost")
                 ? fmt::format(", accuracy {:.2f} → {:.2f} %", 100 * truth["accuracy_before"].get<double>(),
                               100 * truth["accuracy_after"].get<double>())
                 : "");
}

}  // namespace

int lab_plant(const Common& common, const PlantOptions& options) {
  const faults::Kind& kind = faults::find_kind(options.kind);
  const bool judged = !options.data.empty() || !options.test.empty();
  if ((kind.of == faults::Kind::kTraining || options.at_least > 0) && !judged)
    throw InputError(fmt::format("{} needs data", options.at_least > 0 ? "--at-least" : options.kind),
                     "Give --data, for example --data mnist:train.");
  std::error_code none;
  if (std::filesystem::equivalent(options.model, options.product, none))
    throw InputError(fmt::format("{} is the sound model itself", options.product), "Give -o another name.");
  model::Graph graph = onnx::read_model(options.model);
  std::optional<Case> about;
  std::vector<model::Layer> layers;
  if (judged)
    about = open_case(common, options), layers = stream::find_layers(about->judged.subject);
  else
    layers = executor::find_layers(graph);
  if (about && about->judged.settings.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels", about->data->info().spec), "Give data with labels.");
  if (options.at_least > 0 && about->judged.settings.task == observers::Task::kNumber &&
      about->judged.settings.tolerance < 0)
    throw InputError("--at-least needs answers that are right or wrong",
                     "Say in netmend.toml how near is right: goal.tolerance = 0.5");
  Fault fault;
  Cost cost;
  std::string classes;
  uint64_t seed = common.seed;
  for (int round = 0;; ++round, ++seed) {
    if (kind.of == faults::Kind::kTraining)
      fault = poison(common, options, graph, *about, classes);
    else
      fault = faults::plant(graph, layers, kind, {options.count, options.strength, options.layer, seed});
    if (about) cost = cost_of(common, about->judged, layers, fault);
    if (!(options.at_least > 0) || cost.points() >= options.at_least) break;
    if (round == 200 || kind.of == faults::Kind::kTraining)
      throw InputError(fmt::format("no {} of {} tried cost {:g} points of accuracy: many damaged units cost nothing",
                                   kind.name, round + 1, options.at_least),
                       "Try a larger --strength or --count, or a smaller --at-least.");
  }
  model::Graph faulty = graph;
  edits::apply(faulty, fault.edits);
  onnx::write_model(faulty, options.product);
  Json truth = truth_json(options, fault, classes, cost, seed);
  if (!options.truth.empty()) {
    edits::EditFile file = edits::describe(graph, fault.edits, options.model, file_checksum(options.model));
    Json whole = truth;
    whole["edits"] = Json::parse(edits::to_text(file))["edits"];
    write_file(options.truth, whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  report(common, options, truth, fault);
  return 0;
}

}  // namespace netmend::app
