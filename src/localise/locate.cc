#include "localise/locate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "observers/figures.h"
#include "observers/sample_table.h"
#include "session/session.h"
#include "session/split.h"
#include "session/target.h"

namespace netmend::localise {
namespace {

using Json = nlohmann::ordered_json;
using observers::number_json;

void require_outcomes(const observers::PredictionSettings& task, const session::Split& split) {
  if (task.task == observers::Task::kNone)
    throw InputError(
        fmt::format("{} has no labels, so it is unknown which predictions are wrong", split.data->info().spec),
        "Give data with labels.");
  if (!task.has_right_and_wrong())
    throw InputError("the model predicts numbers, which are neither right nor wrong by themselves",
                     "Say in netmend.toml which error still counts as correct: goal.tolerance = 0.5");
}

/// Without those whose gradients cannot be taken, where a measure needs gradients.
std::vector<model::Layer> layers_for(session::Session& session, const LocateRequest& request,
                                     const std::vector<Choice>& choices) {
  const auto& task = session.task();
  std::vector<model::Layer> layers =
      candidates(session.layers(), session.test().subject.graph, task.head, task.outputs, request.layers);
  if (!uses(choices, Measure::kGradient) && !uses(choices, Measure::kAblation)) return layers;
  // Gradients are taken where each input has an axis of its own.
  const size_t before = layers.size();
  std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; });
  if (layers.size() < before)
    session.note(
        "layers whose values mix inputs and positions on one axis are left out: they have no gradients per input");
  if (layers.empty())
    throw InputError("no layer is left to look at",
                     "Measures that count activations look at all layers: --measure ochiai");
  return layers;
}

ScoredUnit scored(const Blame& found, const Located& located, const RankedUnit& unit) {
  ScoredUnit row;
  const UnitPlace& place = found.places[unit.place];
  row.unit = found.unit(unit.place), row.layer = found.layers[place.layer].name;
  row.score = unit.score, row.counts = found.counts[unit.place];
  row.chance = chance_score(row.counts, located.choice);
  row.in_top = unit.in_top, row.rank_low = unit.rank_low, row.rank_high = unit.rank_high;
  if (!found.ablated || located.choice.measure->of != Measure::kAblation) return row;
  const std::vector<double>& by = found.ablated->by[unit.place];
  for (size_t kind = 0; kind < by.size(); ++kind) row.saved.emplace_back(ablation_name(AblationKind(kind)), by[kind]);
  row.best_ablation = ablation_name(found.ablated->best[unit.place]);
  row.more_correct = found.ablated->right[unit.place];
  return row;
}

MeasureRanking plain(const Blame& found, const Located& located) {
  const Ranking& ranking = located.ranking;
  MeasureRanking out;
  out.measure = located.choice.name(), out.formula = located.choice.measure->formula;
  out.of_counts = located.choice.measure->of == Measure::kCounts && located.choice.measure->name != "random";
  out.top = ranking.top, out.resamples = ranking.resamples;
  out.random_rank = ranking.random_rank(), out.random_in_top = ranking.random_in_top();
  for (const RankedUnit& unit : ranking.units) out.units.push_back(scored(found, located, unit));
  for (const RankedLayer& layer : ranking.layers)
    out.layers.push_back({found.layers[layer.layer].name, layer.units, layer.in_top, layer.mean, layer.best,
                          layer.by_chance, layer.first});
  return out;
}

/// The commonest mistake, as a value of --on; "" when predictions are not classes.
std::string commonest(const observers::PredictionSettings& task, const observers::PredictionResult& result) {
  int64_t most = 0;
  std::string target;
  for (size_t label = 0; label < result.confusion.size(); ++label)
    for (size_t predicted = 0; predicted < result.confusion.size(); ++predicted)
      if (label != predicted && result.confusion[label][predicted] > most) {
        most = result.confusion[label][predicted];
        target = fmt::format("confusion={}:{}", task.classes[label], task.classes[predicted]);
      }
  return target;
}

/// Inputs that drive the suspects, as DeepFault makes them; nothing where inputs are no quantities.
Shell drive_command(session::Session& session, const LocateResult& result) {
  constexpr size_t kDriven = 5;
  const std::vector<dataset::Feature>& features = session.test().data->info().features;
  if (features.size() != 1 || features[0].type != at::kFloat || result.rankings.empty()) return {};
  std::vector<std::string> units;
  for (const ScoredUnit& one : result.rankings[0].units)
    if (units.size() < kDriven) units.push_back(one.unit);
  if (units.empty()) return {};
  return session.command("stress", {"--method", "deepfault", "--unit", join(units, ","), "-o", "driven.npz"});
}

Shell next_command(session::Session& session, const LocateRequest& request, const observers::PredictionResult& result) {
  if (!request.on.empty())
    return session.command(
        "locate", {"--on", request.on, "--measure", lower(request.measure) == "gradient" ? "all" : "gradient"});
  if (std::string target = commonest(session.task(), result); !target.empty())
    return session.command("locate", {"--on", target});
  return session.command("locate", {"--measure", lower(request.measure) == "gradient" ? "all" : "gradient"});
}

}  // namespace

int64_t MeasureRanking::rank_of(const std::string& unit) const {
  auto hit = std::find_if(units.begin(), units.end(), [&](const ScoredUnit& one) { return one.unit == unit; });
  return hit == units.end() ? 0 : hit - units.begin() + 1;
}

LocateResult locate(session::Session& session, const LocateRequest& request) {
  BlameOptions how;
  how.choices = choices_of(request.measure);
  session::Split& test = session.test();
  const observers::PredictionSettings& task = session.task();
  require_outcomes(task, test);
  std::vector<model::Layer> layers = layers_for(session, request, how.choices);
  session::parse_target(request.on, task, *test.data);  // a slip of the finger shows before the work
  session.sample(test);
  session::NamedTarget target = session::parse_target(request.on, task, *test.subject.data);
  how.resample_all = lower(request.measure) == "all";
  how.top = request.top, how.resamples = request.resamples, how.threshold = request.threshold;
  how.before_activation = request.before_activation;
  how.target = target.target;
  how.seed = session.request().seed;
  how.pass = session.pass_options();
  how.ablation.budget = session.budget().limited() && !session.request().all ? &session.budget() : nullptr;
  Blame found = blame(test.subject, task, std::move(layers), how);
  session.record(test, "spectra of units", found.result.samples, found.seconds);
  if (found.located.empty() && found.interrupted) throw Interrupted{};
  session::require_both_sides(target, task, found.result, found.failing, found.passing);

  LocateResult result;
  result.model = session.model_name(), result.data = test.data->info().spec;
  result.target = target.text.empty() ? "" : target.words;
  result.inputs = found.result.samples, result.of = test.inputs();
  result.failing = found.failing, result.passing = found.passing;
  result.units = int64_t(found.places.size()), result.always_active = found.always_active();
  result.gradients_failing = found.gradients_failing, result.gradients_passing = found.gradients_passing;
  result.all = how.resample_all;
  for (const Located& located : found.located) result.rankings.push_back(plain(found, located));
  result.next = {next_command(session, request, found.result)};
  if (const Shell drive = drive_command(session, result); !drive.empty()) result.next.push_back(drive);
  result.seconds = found.seconds, result.scoring_seconds = found.scoring;
  result.interrupted = found.interrupted;
  return result;
}

namespace {

Json units_json(const MeasureRanking& ranking) {
  Json list = Json::array();
  for (int64_t i = 0; i < ranking.top; ++i) {
    const ScoredUnit& unit = ranking.units[size_t(i)];
    Json row = {{"rank", i + 1},
                {"unit", unit.unit},
                {"layer", unit.layer},
                {"score", unit.score},
                {"chance", unit.chance},
                {"as", int64_t(unit.counts.as)},
                {"af", int64_t(unit.counts.af)},
                {"ns", int64_t(unit.counts.ns)},
                {"nf", int64_t(unit.counts.nf)},
                {"in_top", number_json(unit.in_top)},
                {"rank_low", unit.rank_low},
                {"rank_high", unit.rank_high}};
    if (!unit.saved.empty()) {
      for (const auto& [kind, saved] : unit.saved) row["saved"][kind] = number_json(saved);
      row["best_ablation"] = unit.best_ablation;
      row["more_correct"] = unit.more_correct;
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json layers_json(const MeasureRanking& ranking) {
  Json list = Json::array();
  for (const ScoredLayer& layer : ranking.layers)
    list.push_back({{"layer", layer.layer},
                    {"units", layer.units},
                    {"mean_score", layer.mean},
                    {"best_score", layer.best},
                    {"in_top", layer.in_top},
                    {"in_top_by_chance", layer.by_chance},
                    {"first", number_json(layer.first)}});
  return list;
}

}  // namespace

Json to_json(const LocateRequest& request, const LocateResult& result) {
  const MeasureRanking& first = result.rankings.at(0);
  Json json = {{"measure", result.all ? "all" : first.measure},
               {"on", request.on.empty() ? Json(nullptr) : Json(request.on)},
               {"inputs", result.inputs},
               {"of", result.of},
               {"failures", result.failing},
               {"passes", result.passing},
               {"threshold", request.threshold},
               {"tap", request.before_activation ? "pre" : "post"},
               {"always_active", result.always_active},
               {"units", result.units},
               {"top", first.top},
               {"resamples", first.resamples},
               {"ranking", units_json(first)},
               {"layers", layers_json(first)},
               {"random", {{"rank", first.random_rank}, {"in_top", first.random_in_top}}}};
  if (result.all) json["ranked_by"] = first.measure;
  json["measures"] = Json::array();
  for (const MeasureRanking& other : result.rankings) {
    Json row = {{"measure", other.measure},
                {"rank_of_first", other.rank_of(first.units[0].unit)},
                {"first", other.units[0].unit}};
    if (result.all) row["ranking"] = units_json(other), row["layers"] = layers_json(other);
    json["measures"].push_back(std::move(row));
  }
  if (result.gradients_failing > 0)
    json["gradient_inputs"] = {{"failing", result.gradients_failing}, {"passing", result.gradients_passing}};
  json["seconds"] = result.seconds;
  json["scoring_seconds"] = result.scoring_seconds;
  json["model"] = result.model, json["data"] = result.data;
  json["next"] = result.next;
  return json;
}

void write_ranking(const std::string& path, const MeasureRanking& ranking) {
  write_csv(path, "rank,unit,layer,score,chance,as,af,ns,nf,in_top,rank_low,rank_high", [&](CsvWriter& out) {
    for (size_t i = 0; i < ranking.units.size(); ++i) {
      const ScoredUnit& unit = ranking.units[i];
      out.row(i + 1, unit.unit, unit.layer, Digits{unit.score, 9}, Digits{unit.chance, 9}, Digits{unit.counts.as, 15},
              Digits{unit.counts.af, 15}, Digits{unit.counts.ns, 15}, Digits{unit.counts.nf, 15},
              Digits{unit.in_top, 4}, unit.rank_low, unit.rank_high);
    }
  });
}

}  // namespace netmend::localise
