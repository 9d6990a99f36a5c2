#include "studies/planted.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "faults/plant.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "repair/mend.h"
#include "studies/poison.h"
#include "studies/side_effects.h"
#include "whatif/whatif.h"

namespace netmend::studies {

using trials::trial_document;

using Json = nlohmann::ordered_json;

std::vector<observers::SampleRow> predictions_of(const stream::Subject& subject,
                                                 const observers::PredictionSettings& settings, int jobs) {
  observers::Predictions predictions(settings, true);
  stream::PassOptions how;
  how.jobs = jobs, how.quiet = true;
  stream::Pass pass(subject);
  auto handle = pass.watch(predictions);
  pass.run(how);
  if (pass.interrupted()) throw Interrupted{};
  return std::move(pass.state(handle).rows);
}

namespace {

constexpr int kAtOnce = 20;
/// Multiply-adds, of the order of a quick repair; a question about a unit counts as a whole pass, which it is not.
constexpr double kDrawingWork = 5e11, kAblationWork = 5e11, kMutantWork = 4e12, kRobustnessWork = 2.5e11;
/// Passes over an input that perturbations and 40 steps of PGD take, there and back.
constexpr double kRobustnessPasses = 130;

struct Fault {
  faults::Fault fault;
  std::string place;  ///< for people
  double before = 0, after = 0;
};

/// Where it is: the unit, the layer or the classes.
std::string place_of(const Sound& sound, const faults::Kind& kind, const faults::Fault& fault) {
  if (kind.of == faults::Kind::kLayer) return fault.layer;
  return join(fault.units, " and ");
}

/// Poisoned with the search part alone: what judges repairs is never trained on.
std::optional<Fault> poisoned_fault(const Sound& sound, const std::vector<int64_t>& search, uint64_t seed,
                                    const PlantedOptions& options) {
  whatif::WhatIf whatif(sound.subject, sound.settings, sound.layers, {.jobs = options.jobs});
  for (uint64_t draw = 0; draw < 3; ++draw) {
    Poisoned poisoned = poison_labels(sound.name, sound.subject.graph, sound.settings.head.output,
                                      dataset::subset(sound.subject.data, search), sound.settings.classes, 1,
                                      Random::hash(seed + draw), options.jobs);
    std::vector<whatif::Question> questions(2);
    questions[1].edits = poisoned.fault.edits;
    const std::vector<whatif::Tally> found = whatif::tally(whatif, sound.settings, questions);
    if (found[0].accuracy() - found[1].accuracy() >= options.at_least)
      return Fault{std::move(poisoned.fault), std::move(poisoned.classes), found[0].accuracy(), found[1].accuracy()};
  }
  return std::nullopt;
}

double accuracy_of(const std::vector<observers::SampleRow>& rows) {
  int64_t right = 0;
  for (const observers::SampleRow& row : rows) right += row.right == observers::SampleRow::kRight;
  return rows.empty() ? 0 : double(right) / double(rows.size());
}

/// The sound network with a fault.
stream::Subject with_fault(const Sound& sound, const faults::Fault& fault) {
  stream::Subject faulty = sound.subject;
  edits::apply(faulty.graph, fault.edits);
  edits::apply(faulty.batching.graph, fault.edits);
  return faulty;
}

/// Draws until one costs enough; nullopt when none of many does. All that are drawn together are judged on `inputs` of
/// the tests, and what costs enough there on all of them.
std::optional<Fault> draw_fault(const Sound& sound, const faults::Kind& kind, uint64_t seed, const TrialInputs& inputs,
                                const PlantedOptions& options) {
  stream::Subject some = sound.subject;
  const bool all = inputs.drawing >= some.data->size();
  if (!all) some.data = dataset::subset(some.data, stream::spread(some.data->size(), inputs.drawing, 0.5));
  whatif::WhatIf whatif(some, sound.settings, sound.layers, {.jobs = options.jobs});
  const double before = accuracy_of(sound.rows);
  for (int first = 0; first < inputs.draws; first += kAtOnce) {
    std::vector<whatif::Question> questions(1);
    std::vector<faults::Fault> drawn;
    for (int i = 0; i < kAtOnce; ++i) {
      try {
        drawn.push_back(faults::plant(sound.subject.graph, sound.layers, kind,
                                      {.seed = Random::hash(seed * 1000003 + uint64_t(first + i))}));
      } catch (const InputError&) {  // a unit without bias cannot be saturated
        continue;
      }
      questions.push_back({drawn.back().edits});
    }
    std::vector<whatif::Tally> found = whatif::tally(whatif, sound.settings, questions);
    for (size_t i = 0; i < drawn.size(); ++i) {
      if (found[0].accuracy() - found[i + 1].accuracy() < options.at_least) continue;
      const double after = all ? found[i + 1].accuracy()
                               : accuracy_of(predictions_of(with_fault(sound, drawn[i]), sound.settings, options.jobs));
      if (before - after >= options.at_least) return Fault{drawn[i], place_of(sound, kind, drawn[i]), before, after};
    }
  }
  return std::nullopt;
}

/// By measure the rank of the first unit that the fault changed; of a damaged layer any of its units will do.
Json ranks_of(const repair::Problem& problem, const faults::Fault& fault, const PlantedOptions& options,
              const TrialInputs& inputs, int64_t& units) {
  std::vector<model::Layer> layers =
      localise::candidates(problem.layers, problem.subject.graph, problem.settings.head, problem.settings.outputs);
  localise::BlameOptions how;
  for (const localise::Measure& measure : localise::measures()) how.choices.push_back({&measure});
  how.resamples = 0, how.seed = options.seed;
  how.ablation.inputs = inputs.ablation, how.mutants = {inputs.mutants, inputs.most_mutants};
  how.pass.jobs = options.jobs, how.pass.quiet = true;
  const stream::Subject part = repair::edited(problem, {}, &problem.parts.search);
  localise::Blame blame = localise::blame(part, problem.settings, layers, how);
  Json ranks = Json::object();
  units = int64_t(blame.places.size());
  auto hit = [&](size_t place) {
    if (!fault.layer.empty()) return blame.layers[blame.places[place].layer].name == fault.layer;
    return std::find(fault.units.begin(), fault.units.end(), blame.unit(place)) != fault.units.end();
  };
  for (const localise::Located& located : blame.located) {
    const std::vector<localise::RankedUnit>& list = located.ranking.units;
    const auto first = std::find_if(list.begin(), list.end(), [&](const auto& one) { return hit(one.place); });
    if (first != list.end()) ranks[std::string(located.choice.measure->name)] = first - list.begin() + 1;
  }
  return ranks;
}

double accuracy_on(const std::vector<observers::SampleRow>& rows, const std::vector<int64_t>& samples) {
  int64_t right = 0;
  for (int64_t sample : samples) right += rows[size_t(sample)].right == observers::SampleRow::kRight;
  return samples.empty() ? 0 : double(right) / double(samples.size());
}

std::vector<observers::SampleRow> rows_at(const std::vector<observers::SampleRow>& rows,
                                          const std::vector<int64_t>& samples) {
  std::vector<observers::SampleRow> out;
  for (int64_t sample : samples) out.push_back(rows[size_t(sample)]);
  return out;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json to_json(const Robustness& changes) { return {{"mild", number(changes.mild)}, {"pgd", number(changes.pgd)}}; }
Json change_json(const WorstChange& worst) { return worst.inputs > 0 ? Json(worst.change) : Json(nullptr); }

/// The pair of label and prediction that is wrong most often.
observers::Target largest_confusion(const std::vector<observers::SampleRow>& rows,
                                    const std::vector<int64_t>& samples) {
  std::map<std::pair<int64_t, int64_t>, int64_t> wrong;
  for (int64_t sample : samples) {
    const observers::SampleRow& row = rows[size_t(sample)];
    if (row.right == observers::SampleRow::kWrong) ++wrong[{int64_t(row.label), int64_t(row.predicted)}];
  }
  observers::Target target;
  int64_t most = 0;
  for (const auto& [pair, count] : wrong)
    if (count > most) most = count, target.label = pair.first, target.predicted = pair.second;
  return target;
}

std::vector<int64_t> strata_of(const std::vector<observers::SampleRow>& rows) {
  std::vector<int64_t> strata;
  for (const observers::SampleRow& row : rows) strata.push_back(int64_t(row.label) * 3 + row.right);
  return strata;
}

/// One repair, and what it did besides.
Json run_repair(const Sound& sound, repair::Problem& problem, const std::string& method, double was,
                const TrialInputs& inputs, const PlantedOptions& options) {
  const std::vector<int64_t>& holdout = problem.parts.holdout;
  const auto start = repair::Clock::now();
  problem.budget = Budget::parse(options.budget);
  repair::Outcome outcome = repair::mend(problem, method, {});
  const double seconds = std::chrono::duration<double>(repair::Clock::now() - start).count();
  // What is not written wins nothing back.
  const std::vector<observers::SampleRow> before = rows_at(problem.rows, holdout);
  const double now = accuracy_on(problem.rows, holdout);
  const bool kept = outcome.verdict == repair::Verdict::kRepaired && outcome.chosen >= 0;
  int64_t right = 0, target = 0, target_right = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    right += before[i].right == observers::SampleRow::kRight;
    if (problem.target.side(before[i]) != observers::Side::kFailing) continue;
    ++target;
    target_right += outcome.after.rows[i].right == observers::SampleRow::kRight;
  }
  Json json = {{"method", method},
               {"targeted", problem.targeted},
               {"work", outcome.work},
               {"verdict", verdict_name(outcome.verdict)},
               {"reason", outcome.reason},
               {"lost", was - now},
               {"won", kept ? outcome.after.result.accuracy - now : 0},
               {"fixed", outcome.flips.fixed},
               {"broken", outcome.flips.broken},
               {"right", right},
               {"target", target},
               {"target_fixed", kept ? target_right : 0},
               {"target_right", target_right},
               {"kept", kept},
               {"seconds", seconds}};
  if (!kept) return json;
  const auto& edits = outcome.tried[size_t(outcome.chosen)].best->edits;
  json["worst_class"] = change_json(worst_class(problem.settings.classes, before, outcome.after.rows));
  json["worst_group"] = change_json(worst_group(*sound.subject.data, before, outcome.after.rows));
  json["changes"] = to_json(robustness_of(repair::edited(problem, edits, &holdout), problem.settings,
                                          outcome.after.rows, problem.seed, options.jobs, inputs.robustness));
  return json;
}

/// Seconds since the last time.
class Laps {
 public:
  double lap() {
    const auto now = repair::Clock::now();
    const double passed = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return passed;
  }

 private:
  repair::Clock::time_point last_ = repair::Clock::now();
};

Json run_trial(const Sound& sound, const faults::Kind& kind, int64_t number, const PlantedOptions& options) {
  const uint64_t seed = Random::hash(options.seed + uint64_t(number) * 7919);
  Laps laps;
  const auto candidates =
      localise::candidates(sound.layers, sound.subject.graph, sound.settings.head, sound.settings.outputs);
  int64_t units = 0;
  for (const model::Layer& layer : candidates) units += layer.units;
  const TrialInputs inputs = trial_inputs(sound.subject.cost, sound.subject.data->size(), units);
  std::optional<Fault> planted;
  repair::Parts parts;
  if (kind.of == faults::Kind::kTraining) {
    parts = repair::split(strata_of(sound.rows), {}, seed);
    planted = poisoned_fault(sound, parts.search, seed, options);
  } else {
    planted = draw_fault(sound, kind, seed, inputs, options);
  }
  if (!planted) return {{"none", true}};
  const stream::Subject faulty = with_fault(sound, planted->fault);
  repair::Problem problem{faulty, sound.settings, sound.layers, predictions_of(faulty, sound.settings, options.jobs)};
  problem.seed = seed, problem.jobs = options.jobs, problem.quiet = true;
  problem.parts = kind.of == faults::Kind::kTraining ? parts : repair::split(strata_of(problem.rows), {}, seed);
  const std::vector<int64_t>& holdout = problem.parts.holdout;
  Json json = {{"place", planted->place}, {"sound", planted->before}, {"faulty", planted->after}};
  json["inputs"] = {{"tests", sound.subject.data->size()},
                    {"drawing", inputs.drawing},
                    {"draws", inputs.draws},
                    {"ablation", std::min<int64_t>(inputs.ablation, int64_t(problem.parts.search.size()))},
                    {"mutants", std::min<int64_t>(inputs.mutants, int64_t(problem.parts.search.size()))},
                    {"most_mutants", inputs.most_mutants},
                    {"robustness", inputs.robustness}};
  json["seconds"]["drawing"] = laps.lap();
  units = 0;
  json["ranks"] = kind.of == faults::Kind::kUnit || kind.of == faults::Kind::kLayer
                      ? ranks_of(problem, planted->fault, options, inputs, units)
                      : Json::object();
  json["units"] = units;
  json["seconds"]["ranking"] = laps.lap();
  json["repairs"] = Json::array();
  if (options.repairs.empty() && options.targeted.empty()) return json;
  const stream::Subject sound_part = [&] {
    stream::Subject part = sound.subject;
    part.data = dataset::subset(sound.subject.data, holdout);
    return part;
  }();
  json["sound_changes"] = to_json(
      robustness_of(sound_part, sound.settings, rows_at(sound.rows, holdout), seed, options.jobs, inputs.robustness));
  json["faulty_changes"] =
      to_json(robustness_of(repair::edited(problem, {}, &holdout), sound.settings, rows_at(problem.rows, holdout), seed,
                            options.jobs, inputs.robustness));
  json["seconds"]["changes"] = laps.lap();
  const double was = accuracy_on(sound.rows, holdout);
  for (const std::string& method : options.repairs)
    json["repairs"].push_back(run_repair(sound, problem, method, was, inputs, options));
  if (options.targeted.empty()) return json;
  problem.target = largest_confusion(problem.rows, problem.parts.search);
  problem.targeted = problem.target.label >= 0;
  if (!problem.targeted) return json;
  json["confusion"] = sound.settings.classes[size_t(problem.target.label)] + ":" +
                      sound.settings.classes[size_t(problem.target.predicted)];
  for (const std::string& method : options.targeted)
    json["repairs"].push_back(run_repair(sound, problem, method, was, inputs, options));
  return json;
}

}  // namespace

TrialInputs trial_inputs(double cost, int64_t inputs, int64_t units) {
  const localise::BlameOptions usual;
  cost = std::max(cost, 1.0);
  auto fit = [&](double work, double each, int64_t fewest, int64_t most) {
    return std::clamp(int64_t(std::min(work / (each * cost), 1e9)), std::min(fewest, most), most);
  };
  TrialInputs found;
  found.drawing = fit(kDrawingWork, kAtOnce, 500, inputs);
  found.draws = fit(10 * kDrawingWork, double(std::max<int64_t>(found.drawing, 1)), 100, 300);
  found.ablation =
      fit(kAblationWork, double(std::min<int64_t>(units, usual.ablation.tried)), 256, usual.ablation.inputs);
  // Fewer mutants first, down to two a unit.
  found.most_mutants =
      fit(kMutantWork, double(usual.mutants.inputs), std::min(2 * units, usual.mutants.most), usual.mutants.most);
  const int64_t mutants = std::min(8 * std::max<int64_t>(units, 1), found.most_mutants);
  found.mutants = fit(kMutantWork, double(mutants), 128, usual.mutants.inputs);
  found.robustness = fit(kRobustnessWork, kRobustnessPasses, 60, kRobustnessInputs);
  return found;
}

void run_planted(Store& store, const std::vector<std::string>& networks,
                 const std::function<Sound(const std::string&)>& open_network, const PlantedOptions& options,
                 const std::function<void(const std::string&)>& progress) {
  struct Fault {
    const faults::Kind* kind;
    int64_t number;
  };
  std::map<std::string, Fault> faults;
  std::vector<trials::Part> parts;
  int64_t count = 0;
  for (const std::string& network : networks) {
    trials::Part part{network, {}, [&, network]() -> trials::RunTrial {
                        auto sound = std::make_shared<const Sound>(open_network(network));
                        return [&, sound](const std::string& key) {
                          const Fault& fault = faults.at(key);
                          return json_text(run_trial(*sound, *fault.kind, fault.number, options));
                        };
                      }};
    for (const std::string& name : options.kinds)
      for (int64_t number = 1; number <= options.seeds; ++number) {
        if (!options.slice.holds(count++)) continue;
        // Everything that the result depends on.
        part.keys.push_back(fmt::format("{}|{}|{}|seed {}|{} points|{} {}{}", network, name, number, options.seed,
                                        100 * options.at_least, join(options.repairs, "+"), options.budget,
                                        options.targeted.empty() ? "" : ", targeted " + join(options.targeted, "+")));
        if (options.limit > 0) part.keys.back() += fmt::format("|{} tests", options.limit);
        faults[part.keys.back()] = {&faults::find_kind(name), number};
      }
    parts.push_back(std::move(part));
  }
  auto told = [&](const std::string& key, const std::string& text) {
    if (!progress) return;
    const JsonDocument document = trial_document(key, text);
    const auto& result = document.json();
    if (result.contains("none"))
      progress(fmt::format("{}: nothing that was drawn costs enough", key));
    else
      progress(fmt::format("{}: {} lost {:.1f} points{}", key, result["place"].get<std::string>(),
                           100 * (result["sound"].get<double>() - result["faulty"].get<double>()),
                           result["ranks"].contains("auto")
                               ? fmt::format("; auto ranks it {}", result["ranks"]["auto"].get<int64_t>())
                               : ""));
  };
  trials::run_parts(store, parts, {1, {}, told});
}

namespace {

double number_or_none(const JsonView& row, const char* name) {
  const JsonView value = row.at(name);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.number();
}

PlantedTrial::Changes changes_of(const JsonView& row) {
  return {number_or_none(row, "mild"), number_or_none(row, "pgd")};
}

}  // namespace

std::vector<PlantedTrial> read_planted(const Store& store) {
  std::vector<PlantedTrial> list;
  for (const auto& [key, text] : store.all()) {
    const JsonDocument document = trial_document(key, text);
    const JsonView row = document.top();
    const std::vector<std::string> parts = split(key, '|');
    if (!row.has("place") || parts.size() < 3) continue;
    PlantedTrial trial;
    trial.network = parts[0], trial.kind = parts[1];
    parse_int(parts[2], trial.seed);
    trial.place = row.at("place").text(), trial.units = row.at("units").whole();
    trial.sound = row.at("sound").number(), trial.faulty = row.at("faulty").number();
    for (const std::string& measure : row.at("ranks").keys())
      trial.ranks.emplace_back(measure, row.at("ranks").at(measure).whole());
    const JsonView looked_at = row.at("inputs"), seconds = row.at("seconds");
    trial.inputs = looked_at.at("tests").whole();
    auto number = [&](const char* name) { return looked_at.has(name) ? looked_at.at(name).whole() : 0; };
    trial.looked_at = {number("drawing"), number("draws"),        number("ablation"),
                       number("mutants"), number("most_mutants"), number("robustness")};
    trial.drawing = seconds.at("drawing").number(), trial.ranking = seconds.at("ranking").number();
    if (seconds.has("changes")) trial.changes = seconds.at("changes").number();
    if (row.has("sound_changes")) trial.sound_changes = changes_of(row.at("sound_changes"));
    if (row.has("faulty_changes")) trial.faulty_changes = changes_of(row.at("faulty_changes"));
    const JsonView repairs = row.at("repairs");
    for (size_t i = 0; i < repairs.size(); ++i) {
      const JsonView one = repairs.at(i);
      PlantedTrial::Repair repair;
      repair.method = one.at("method").text(), repair.verdict = one.at("verdict").text();
      repair.targeted = one.at("targeted").truth(), repair.kept = one.at("kept").truth();
      repair.lost = one.at("lost").number(), repair.won = one.at("won").number();
      repair.fixed = one.at("fixed").whole(), repair.broken = one.at("broken").whole();
      repair.target = one.at("target").whole(), repair.target_fixed = one.at("target_fixed").whole();
      repair.target_right = one.at("target_right").whole();
      repair.seconds = one.at("seconds").number(), repair.work = one.at("work").number();
      repair.right = one.at("right").number();
      if (repair.kept) {
        repair.worst_class = number_or_none(one, "worst_class");
        repair.worst_group = number_or_none(one, "worst_group");
        repair.changes = changes_of(one.at("changes"));
      }
      trial.repairs.push_back(std::move(repair));
    }
    list.push_back(std::move(trial));
  }
  return list;
}

}  // namespace netmend::studies
