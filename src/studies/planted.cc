#include "studies/planted.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "faults/plant.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "repair/mend.h"
#include "whatif/whatif.h"

namespace netmend::studies {

using trials::trial_document;

using Json = nlohmann::ordered_json;

namespace {

constexpr int kMostDraws = 300;

struct Fault {
  faults::Fault fault;
  double before = 0, after = 0;
};

/// Draws until one costs enough; nullopt when none of many does.
std::optional<Fault> draw_fault(const Sound& sound, const faults::Kind& kind, uint64_t seed,
                                const PlantedOptions& options) {
  whatif::WhatIf whatif(sound.subject, sound.settings, sound.layers, {.jobs = options.jobs});
  constexpr int kAtOnce = 20;
  for (int first = 0; first < kMostDraws; first += kAtOnce) {
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
    for (size_t i = 0; i < drawn.size(); ++i)
      if (found[0].accuracy() - found[i + 1].accuracy() >= options.at_least)
        return Fault{drawn[i], found[0].accuracy(), found[i + 1].accuracy()};
  }
  return std::nullopt;
}

std::vector<observers::SampleRow> rows_of(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                          int jobs) {
  observers::Predictions predictions(settings, true);
  stream::PassOptions how;
  how.jobs = jobs, how.quiet = true;
  stream::Pass pass(subject);
  auto handle = pass.watch(predictions);
  pass.run(how);
  if (pass.interrupted()) throw Interrupted{};
  return std::move(pass.state(handle).rows);
}

Json ranks_of(const repair::Problem& problem, const std::string& unit, const PlantedOptions& options, int64_t& units) {
  std::vector<model::Layer> layers =
      localise::candidates(problem.layers, problem.subject.graph, problem.settings.head, problem.settings.outputs);
  localise::BlameOptions how;
  for (const localise::Measure& measure : localise::measures()) how.choices.push_back({&measure});
  how.resamples = 0, how.seed = options.seed;
  how.pass.jobs = options.jobs, how.pass.quiet = true;
  const stream::Subject part = repair::edited(problem, {}, &problem.parts.search);
  localise::Blame blame = localise::blame(part, problem.settings, layers, how);
  Json ranks = Json::object();
  units = int64_t(blame.places.size());
  for (const localise::Located& located : blame.located)
    for (size_t i = 0; i < located.ranking.units.size(); ++i)
      if (blame.unit(located.ranking.units[i].place) == unit) ranks[std::string(located.choice.measure->name)] = i + 1;
  return ranks;
}

double accuracy_on(const std::vector<observers::SampleRow>& rows, const std::vector<int64_t>& samples) {
  int64_t right = 0;
  for (int64_t sample : samples) right += rows[size_t(sample)].right == observers::SampleRow::kRight;
  return samples.empty() ? 0 : double(right) / double(samples.size());
}

Json run_trial(const Sound& sound, const faults::Kind& kind, int64_t number, const PlantedOptions& options) {
  const uint64_t seed = Random::hash(options.seed + uint64_t(number) * 7919);
  std::optional<Fault> planted = draw_fault(sound, kind, seed, options);
  if (!planted) return {{"none", true}};
  stream::Subject faulty = sound.subject;
  edits::apply(faulty.graph, planted->fault.edits);
  edits::apply(faulty.batching.graph, planted->fault.edits);
  const auto sound_rows = rows_of(sound.subject, sound.settings, options.jobs);
  repair::Problem problem{faulty, sound.settings, sound.layers, rows_of(faulty, sound.settings, options.jobs)};
  problem.seed = seed, problem.jobs = options.jobs, problem.quiet = true;
  std::vector<int64_t> strata;
  for (const observers::SampleRow& row : problem.rows) strata.push_back(int64_t(row.label) * 3 + row.right);
  problem.parts = repair::split(strata, {}, seed);
  Json json = {{"unit", planted->fault.units.at(0)}, {"sound", planted->before}, {"faulty", planted->after}};
  int64_t units = 0;
  json["ranks"] = ranks_of(problem, planted->fault.units.at(0), options, units);
  json["units"] = units;
  json["repairs"] = Json::array();
  const double was = accuracy_on(sound_rows, problem.parts.holdout);
  for (const std::string& method : options.repairs) {
    const auto start = repair::Clock::now();
    problem.budget = Budget::parse(options.budget);
    repair::Outcome outcome = repair::mend(problem, method, {});
    // What is not written wins nothing back.
    const double now = accuracy_on(problem.rows, problem.parts.holdout);
    const bool kept = outcome.verdict == repair::Verdict::kRepaired;
    const double after = kept ? outcome.after.result.accuracy : now;
    json["repairs"].push_back({{"method", method},
                               {"verdict", verdict_name(outcome.verdict)},
                               {"lost", was - now},
                               {"won", after - now},
                               {"fixed", outcome.flips.fixed},
                               {"broken", outcome.flips.broken},
                               {"seconds", std::chrono::duration<double>(repair::Clock::now() - start).count()}});
  }
  return json;
}

}  // namespace

void run_planted(Store& store, const Sound& sound, const PlantedOptions& options,
                 const std::function<void(const std::string&)>& progress) {
  for (const std::string& name : options.kinds) {
    const faults::Kind& kind = faults::find_kind(name);
    if (kind.of != faults::Kind::kUnit) fail("{} is not a fault of a single unit", name);
    for (int64_t number = 1; number <= options.seeds; ++number) {
      // Everything that the result depends on.
      const std::string key = fmt::format("{}|{}|{}|seed {}|{} points|{} {}", sound.name, name, number, options.seed,
                                          100 * options.at_least, join(options.repairs, "+"), options.budget);
      if (store.find(key)) continue;
      if (interrupted()) throw Interrupted{};
      Json result = run_trial(sound, kind, number, options);
      store.put(key, json_text(result));
      if (progress && result.contains("unit"))
        progress(fmt::format("{}: {} lost {:.1f} points; auto ranks it {}", key, result["unit"].get<std::string>(),
                             100 * (result["sound"].get<double>() - result["faulty"].get<double>()),
                             result["ranks"].value("auto", 0)));
    }
  }
}

std::vector<PlantedTrial> read_planted(const Store& store) {
  std::vector<PlantedTrial> list;
  for (const auto& [key, text] : store.all()) {
    const JsonDocument document = trial_document(key, text);
    const JsonView row = document.top();
    const std::vector<std::string> parts = split(key, '|');
    if (!row.has("unit") || parts.size() < 3) continue;
    PlantedTrial trial;
    trial.network = parts[0], trial.kind = parts[1];
    parse_int(parts[2], trial.seed);
    trial.unit = row.at("unit").text(), trial.units = row.at("units").whole();
    trial.sound = row.at("sound").number(), trial.faulty = row.at("faulty").number();
    for (const std::string& measure : row.at("ranks").keys())
      trial.ranks.emplace_back(measure, row.at("ranks").at(measure).whole());
    const JsonView repairs = row.at("repairs");
    for (size_t i = 0; i < repairs.size(); ++i) {
      const JsonView one = repairs.at(i);
      trial.repairs.push_back({one.at("method").text(), one.at("verdict").text(), one.at("lost").number(),
                               one.at("won").number(), one.at("fixed").whole(), one.at("broken").whole(),
                               one.at("seconds").number()});
    }
    list.push_back(std::move(trial));
  }
  return list;
}

}  // namespace netmend::studies
