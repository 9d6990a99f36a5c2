// deepfault: does driving the units that spectra suspect change predictions more than driving units drawn at random?
// Eniser, Gerasimou, Sen: DeepFault, Fault Localization for Deep Neural Networks (FASE 2019, arXiv:1902.05974), its own
// experiment: units are located class by class, and inputs of the class that are predicted correctly are moved up the
// mean gradient of the suspicious units, one step, no value by more than 0.1.
//
// What differs: gradients are of the post-activation outputs of hidden layers with weights; random units are drawn from
// the others, several times; and the loss before stands beside the loss after.
#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "inputs/campaign.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "session/split.h"
#include "stats/comparisons.h"
#include "stats/distributions.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;
using observers::SampleRow;

constexpr int kVersion = 1;
constexpr int64_t kDraws = 5;
const std::vector<std::string> kMeasures = {"tarantula", "ochiai", "dstar"};
const std::vector<int64_t> kCounts = {1, 3, 5, 10};

/// What became of some inputs.
struct Outcome {
  double loss = 0, accuracy = 0;
};

class Experiment {
 public:
  Experiment(session::Session& session, const StudyContext& context, int64_t inputs)
      : split_(session.test()), task_(session.task()), context_(context), inputs_(inputs) {
    layers_ = localise::candidates(session.layers(), split_.subject.graph, task_.head, task_.outputs);
    changed_ = inputs::find_subject(split_.subject.data->info());
    range_.emplace(*split_.subject.data, changed_.feature);
  }

  int64_t classes() const { return int64_t(task_.classes.size()); }

  /// One class: all measures, counts and draws.
  Json run(int64_t c) {
    localise::BlameOptions how;
    for (const std::string& name : kMeasures) how.choices.push_back(localise::find_measure(name));
    how.resamples = 0, how.seed = context_.seed, how.target.label = c;
    how.pass.jobs = context_.jobs, how.pass.quiet = true;
    const localise::Blame blame = localise::blame(split_.subject, task_, layers_, how);
    if (blame.located.empty()) return {{"failing", blame.failing}, {"passing", blame.passing}};
    inputs::Chosen chosen;
    for (const SampleRow& row : rows())
      if (row.label == double(c) && row.right == SampleRow::kRight && chosen.count() < inputs_)
        chosen.samples.push_back(row.sample), chosen.predictions.push_back(c);
    Json json = {{"failing", blame.failing}, {"passing", blame.passing}, {"inputs", chosen.count()}};
    json["before"] = json_of(outcome({}, chosen));
    for (int64_t count : kCounts) {
      std::vector<localise::UnitPlace> suspects;
      for (size_t m = 0; m < kMeasures.size(); ++m) {
        suspects.clear();
        for (const localise::RankedUnit& unit : blame.located[m].ranking.units)
          if (int64_t(suspects.size()) < count) suspects.push_back(blame.places[unit.place]);
        json[kMeasures[m]][std::to_string(count)] = json_of(outcome(suspects, chosen));
      }
      Outcome mean;
      for (int64_t draw = 0; draw < kDraws; ++draw) {
        std::vector<localise::UnitPlace> all = blame.places;
        Random(context_.seed + uint64_t(draw), uint64_t(c)).shuffle(all);
        all.resize(size_t(std::min<int64_t>(count, int64_t(all.size()))));
        const Outcome one = outcome(all, chosen);
        mean.loss += one.loss / kDraws, mean.accuracy += one.accuracy / kDraws;
      }
      json["random"][std::to_string(count)] = json_of(mean);
    }
    return json;
  }

 private:
  static Json json_of(const Outcome& outcome) { return {{"loss", outcome.loss}, {"accuracy", outcome.accuracy}}; }

  const std::vector<SampleRow>& rows() {
    if (!rows_.empty()) return rows_;
    observers::Predictions predictions(task_, true);
    stream::Pass pass(split_.subject);
    auto handle = pass.watch(predictions);
    stream::PassOptions how;
    how.jobs = context_.jobs, how.quiet = true;
    pass.run(how);
    if (pass.interrupted()) throw Interrupted{};
    return rows_ = pass.state(handle).rows;
  }

  /// Of the inputs driven by these units; of the inputs as they are without any.
  Outcome outcome(const std::vector<localise::UnitPlace>& units, const inputs::Chosen& chosen) const {
    std::vector<inputs::UnitPlace> driven;
    for (const localise::UnitPlace& unit : units) driven.push_back({layers_[unit.layer], unit.unit});
    const inputs::Network network(split_.subject, task_, changed_, &*range_, driven);
    const inputs::Method& method = inputs::find_method("deepfault");
    const inputs::Settings settings = inputs::settle(method, changed_, {});
    Outcome sum;
    constexpr int64_t kTogether = 100;
    for (int64_t first = 0; first < chosen.count(); first += kTogether) {
      stop_if_interrupted();
      const inputs::Originals some =
          inputs::read_originals(network, split_.subject, chosen, first, std::min(kTogether, chosen.count() - first));
      at::Tensor made = units.empty() ? some.units : method.make(network, some, settings).units;
      at::Tensor scores = network.scores(some, made).to(at::kDouble), labels = some.predictions;
      sum.loss -= scores.log_softmax(1).gather(1, labels.unsqueeze(1)).sum().item<double>();
      sum.accuracy += (scores.argmax(1) == labels).sum().item<double>();
    }
    const auto count = double(std::max<int64_t>(1, chosen.count()));
    return {sum.loss / count, sum.accuracy / count};
  }

  session::Split& split_;
  const observers::PredictionSettings& task_;
  const StudyContext& context_;
  int64_t inputs_;
  std::vector<model::Layer> layers_;
  inputs::Subject changed_;
  std::optional<stream::RawRange> range_;
  std::vector<SampleRow> rows_;
};

/// Each class of each network is one observation.
Json summary(const trials::Store& store) {
  struct Cell {
    std::vector<double> loss, accuracy, more_loss, less_accuracy;
  };
  std::map<std::pair<std::string, int64_t>, Cell> cells;
  int64_t classes = 0, without = 0;
  for (const auto& [key, text] : store.all()) {
    const Json json = trials::trial_document(key, text).json();
    if (!json.contains("random")) {
      ++without;
      continue;
    }
    ++classes;
    std::vector<std::string> names = kMeasures;
    names.emplace_back("random");
    for (const std::string& name : names)
      for (int64_t count : kCounts) {
        const Json &own = json[name][std::to_string(count)], &random = json["random"][std::to_string(count)];
        Cell& cell = cells[{name, count}];
        cell.loss.push_back(own["loss"]), cell.accuracy.push_back(own["accuracy"]);
        cell.more_loss.push_back(own["loss"].get<double>() - random["loss"].get<double>());
        cell.less_accuracy.push_back(random["accuracy"].get<double>() - own["accuracy"].get<double>());
      }
  }
  auto told = [](const std::vector<double>& values) {
    const auto n = double(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (double x : values) squares += (x - mean) * (x - mean);
    Json json = {{"mean", mean}, {"low", nullptr}, {"high", nullptr}, {"p", nullptr}};
    if (values.size() < 3) return json;
    const double half = stats::t_quantile_95(n - 1) * std::sqrt(squares / (n - 1) / n),
                 p = stats::paired_t_test(values).p;
    json["low"] = mean - half, json["high"] = mean + half;
    if (std::isfinite(p)) json["p"] = p;
    return json;
  };
  Json rows = Json::array();
  for (const auto& [at, cell] : cells)
    rows.push_back({{"units_by", at.first},
                    {"units", at.second},
                    {"classes", cell.loss.size()},
                    {"loss", told(cell.loss)["mean"]},
                    {"accuracy", told(cell.accuracy)["mean"]},
                    {"more_loss", told(cell.more_loss)},
                    {"less_accuracy", told(cell.less_accuracy)}});
  return {{"classes", classes}, {"without_failures", without}, {"rows", rows}};
}

std::string text_of(const Json& json) {
  std::string out = fmt::format(
      "# DeepFault's experiment\n\n{} classes with failures; {} have none and cannot be located. Inputs of a class are "
      "driven by its most suspicious units, or by as many drawn at random. Differences from random units with their "
      "95 % intervals, each class one observation.\n\n## Suspicious against random units\n\n",
      json["classes"].get<int64_t>(), json["without_failures"].get<int64_t>());
  Table table(
      {"units by", "units", "loss", "accuracy %", "loss above random", "p", "accuracy below random, points", "p"});
  auto difference = [](const Json& told, double factor) {
    if (told["low"].is_null()) return fmt::format("{:.3f}", factor * told["mean"].get<double>());
    return fmt::format("{:.3f} [{:.3f}, {:.3f}]", factor * told["mean"].get<double>(),
                       factor * told["low"].get<double>(), factor * told["high"].get<double>());
  };
  auto p = [](const Json& told) {
    return told["p"].is_number() ? fmt::format("{:.2g}", told["p"].get<double>()) : std::string("–");
  };
  for (const Json& row : json["rows"]) {
    const bool random = row["units_by"] == "random";
    table.row({row["units_by"], json_text(row["units"]), fmt::format("{:.3f}", row["loss"].get<double>()),
               fmt::format("{:.1f}", 100 * row["accuracy"].get<double>()),
               random ? "" : difference(row["more_loss"], 1), random ? "" : p(row["more_loss"]),
               random ? "" : difference(row["less_accuracy"], 100), random ? "" : p(row["less_accuracy"])});
  }
  return out + table.text();
}

}  // namespace

Json run_deepfault_study(const StudyContext& context, const DeepFaultRequest& request) {
  make_folders(context.folder);
  trials::Store store(context.folder + "/trials.db", fmt::format("deepfault, seed {}", context.seed), kVersion);
  for (const std::string& network : request.models) {
    session::Session session = open_session(context, trained_file(context, network));
    if (!session.task().by_class()) fail("{} does not predict classes", network);
    Experiment experiment(session, context, request.inputs);
    for (int64_t c = 0; c < experiment.classes(); ++c) {
      const std::string key = fmt::format("{}|{}|{}", network, request.inputs, c);
      if (store.find(key)) continue;
      if (interrupted()) throw Interrupted{};
      store.put(key, json_text(experiment.run(c)));
      tell(context, key);
    }
  }
  Json json = summary(store);
  json["out"] = context.folder;
  write_trials(store, context.folder + "/trials.csv");
  write_file(context.folder + "/deepfault.json", json_text(json, 2) + "\n");
  json["text"] = text_of(json);
  return json;
}

}  // namespace netmend::studies
