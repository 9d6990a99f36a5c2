// netmend locate: which units and layers, or single weights, are to blame when the network is wrong.
#include "localise/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using localise::LocateResult;
using localise::MeasureRanking;
using localise::ScoredUnit;

std::string percent(double value) { return std::isfinite(value) ? fmt::format("{:.0f} %", 100 * value) : "–"; }

void print_units(const MeasureRanking& ranking) {
  size_t width = 6;
  for (int64_t i = 0; i < ranking.top; ++i) width = std::max(width, ranking.units[size_t(i)].unit.size());
  width = std::min<size_t>(width, 40);
  const bool ablation = !ranking.units[0].best_ablation.empty();  // what a score would be by chance is of counts
  fmt::print("\n        {:<{}}      score  {:>9}   active: wrong    right   in first {:<3}  rank in resamples\n",
             "unit", width, ablation ? "ablation" : "by chance", ranking.top);
  for (int64_t i = 0; i < ranking.top; ++i) {
    const ScoredUnit& unit = ranking.units[size_t(i)];
    const localise::Counts& c = unit.counts;
    fmt::print("  {:>4}  {:<{}}  {:>9.4g}  {:>9}         {:>5.1f} %  {:>5.1f} %   {:>10}   {:>8}–{}\n", i + 1,
               printable(unit.unit), width, unit.score,
               ablation ? unit.best_ablation : fmt::format("{:.4g}", unit.chance), 100 * c.af / (c.af + c.nf),
               100 * c.as / (c.as + c.ns), percent(unit.in_top), unit.rank_low, unit.rank_high);
  }
  fmt::print("  random baseline: in first {} with {}, rank {:.4g} on average\n", ranking.top,
             percent(ranking.random_in_top), ranking.random_rank);
}

void print_layers(const MeasureRanking& ranking) {
  constexpr size_t kShown = 12;
  size_t width = 5;
  for (const localise::ScoredLayer& layer : ranking.layers) width = std::max(width, layer.layer.size());
  width = std::min<size_t>(width, 40);
  fmt::print("\n        {:<{}}   units  mean score       best   in first {:<3}  by chance   highest mean in\n", "layer",
             width, ranking.top);
  for (size_t i = 0; i < std::min(kShown, ranking.layers.size()); ++i) {
    const localise::ScoredLayer& layer = ranking.layers[i];
    fmt::print("        {:<{}}  {:>6}   {:>9.4g}  {:>9.4g}   {:>8}      {:>8.1f}   {:>8}\n", printable(layer.layer),
               width, layer.units, layer.mean, layer.best, layer.in_top, layer.by_chance, percent(layer.first));
  }
  if (ranking.layers.size() > kShown)
    fmt::print("        … and {} more layers (--json has all)\n", ranking.layers.size() - kShown);
}

/// Where the other measures put the first unit.
void print_others(const LocateResult& found) {
  const std::string& best = found.rankings[0].units[0].unit;
  std::vector<std::string> others;
  for (size_t i = 1; i < found.rankings.size(); ++i)
    others.push_back(fmt::format("{} {}", found.rankings[i].measure, found.rankings[i].rank_of(best)));
  if (!others.empty()) fmt::print("\n  rank of {} by {}\n", printable(best), join(others, ", "));
}

/// `--measure all`: a line per measure.
void print_measures(const LocateResult& found) {
  size_t width = 5;
  for (const MeasureRanking& one : found.rankings) width = std::max(width, one.units[0].unit.size());
  width = std::min<size_t>(width, 40);
  const MeasureRanking& lead = found.rankings[0];
  fmt::print("\n  measure     {:<{}}      score   in first {:<3}  rank in resamples   of its first {} also in {}'s\n",
             "first", width, lead.top, lead.top, lead.measure);
  for (const MeasureRanking& one : found.rankings) {
    const ScoredUnit& first = one.units[0];
    int64_t shared = 0;
    for (int64_t i = 0; i < lead.top; ++i) shared += lead.rank_of(one.units[size_t(i)].unit) <= lead.top;
    fmt::print("  {:<10}  {:<{}}  {:>9.4g}   {:>8}     {:>4}–{:<4}           {:>4}\n", one.measure,
               printable(first.unit), width, first.score, percent(first.in_top), first.rank_low, first.rank_high,
               shared);
  }
}

void print_located(const LocateOptions& options, const LocateResult& found) {
  const MeasureRanking& ranking = found.rankings[0];
  fmt::print("{}  on {}{}\n", printable(found.model), printable(found.data),
             found.target.empty() ? "" : ", " + printable(found.target));
  fmt::print("  {} failing and {} correct inputs   {} in {}, active above {:g} ({})   {:.2f} s\n",
             with_commas(found.failing), with_commas(found.passing), counted(found.units, "unit"),
             counted(int64_t(ranking.layers.size()), "layer"), options.threshold, options.tap,
             found.seconds + found.scoring_seconds);
  fmt::print("  measure {}: {}; {} resamples\n", ranking.measure, ranking.formula, ranking.resamples);
  if (found.gradients_failing > 0)
    fmt::print("  gradients of {} failing and {} correct inputs\n", with_commas(found.gradients_failing),
               with_commas(found.gradients_passing));
  if (found.failing < 10) fmt::print("  only {}: the ranking is uncertain\n", counted(found.failing, "failing input"));
  if (4 * found.always_active > found.units && ranking.of_counts)
    fmt::print(
        "  {} of {} units are active on every input, counts cannot tell them apart: try --tap pre or --measure "
        "auto\n",
        with_commas(found.always_active), with_commas(found.units));
  print_units(ranking);
  print_layers(ranking);
  found.all ? print_measures(found) : print_others(found);
}

void print_weights(const localise::WeightResult& found, size_t top) {
  fmt::print(
      "{}  on {}\n  {} that no other weight beats in both forward impact and gradient of the loss, failing "
      "against correct inputs\n\n",
      printable(found.model), printable(found.data), counted(int64_t(found.weights.size()), "weight"));
  fmt::print("  {:<20} {:<24} {:<14} {:>10} {:>11} {:>11}\n", "unit", "parameter", "index", "value", "impact",
             "gradient");
  for (size_t i = 0; i < std::min(found.weights.size(), top); ++i) {
    const localise::LocatedWeight& one = found.weights[i];
    fmt::print("  {:<20} {:<24} {:<14} {:>10.4g} {:>11.4g} {:>11.4g}\n", printable(one.unit), printable(one.parameter),
               one.index, one.value, one.impact, one.gradient);
  }
  if (!found.passed_over.empty())
    fmt::print("  passed over (weights that cannot be blamed one by one): {}\n",
               printable(join(found.passed_over, ", ")));
  fmt::print("  next      {}\n", printable(found.next.at(0)));
}

localise::LocateRequest request_of(const LocateOptions& options) {
  return {options.measure, options.on,        options.tap == "pre", options.layers,
          options.top,     options.resamples, options.threshold};
}

int weights_of(const Common& common, const LocateOptions& options, session::Session& session) {
  localise::WeightResult found = localise::locate_weights(session, request_of(options));
  Json json = localise::to_json(found);
  RunFolder& folder = session.folder("locate");
  json["run"] = folder.path();
  write_file(folder.file("locate.json"), evidence::dump(json, 2));
  session.finish(found.seconds, 0);
  if (common.json) return print_json(json), 0;
  print_weights(found, size_t(std::max<int64_t>(options.top, 20)));
  return 0;
}

}  // namespace

int locate(const Common& common, const LocateOptions& options) {
  const bool weights = lower(options.measure) == "arachne";
  if (!weights) localise::choices_of(options.measure);  // a slip of the finger shows before the work
  session::Session session(request_of(common, options));
  Examined examined = examine(common, options, session, "locate");
  if (examined.stop) return *examined.stop;
  if (weights) return weights_of(common, options, session);

  const localise::LocateRequest request = request_of(options);
  LocateResult found = localise::locate(session, request);
  RunFolder& folder = session.folder("locate");
  localise::write_ranking(folder.file("ranking.csv"), found.rankings[0]);
  if (found.all)
    for (const MeasureRanking& one : found.rankings)
      localise::write_ranking(folder.file(fmt::format("ranking-{}.csv", one.measure)), one);
  Json json = localise::to_json(request, found);
  json["preflight"] = evidence::preflight_json(examined.preflight);
  json["run"] = folder.path();
  write_file(folder.file("locate.json"), evidence::dump(json, 2));
  session.finish(found.seconds + found.scoring_seconds, found.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
  } else {
    print_located(options, found);
    fmt::print("\n  next  {}\n  every unit: {}/ranking.csv\n", printable(found.next.at(0)), folder.path());
  }
  if (found.interrupted) say(common, fmt::format("stopped: this is of the first {} inputs", with_commas(found.inputs)));
  return found.interrupted ? 130 : 0;
}

}  // namespace netmend::app
