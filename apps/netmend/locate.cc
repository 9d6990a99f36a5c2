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
  const bool ablation = !ranking.units[0].best_ablation.empty();  // what a score would be by chance is of counts
  Table table{{"", "unit", "score", ablation ? "ablation" : "by chance", "active: wrong", "correct",
               fmt::format("in first {}", ranking.top), "rank"},
              "rlrrrrrr",
              2};
  for (int64_t i = 0; i < ranking.top; ++i) {
    const ScoredUnit& unit = ranking.units[size_t(i)];
    const localise::Counts& c = unit.counts;
    table.rows.push_back({std::to_string(i + 1), unit.unit, fmt::format("{:.4g}", unit.score),
                          ablation ? unit.best_ablation : fmt::format("{:.4g}", unit.chance),
                          fmt::format("{:.1f} %", 100 * c.af / (c.af + c.nf)),
                          fmt::format("{:.1f} %", 100 * c.as / (c.as + c.ns)), percent(unit.in_top),
                          fmt::format("{}–{}", unit.rank_low, unit.rank_high)});
  }
  print("\n");
  print_table(table);
  print_wrapped(fmt::format("active: share of the wrongly and of the correctly predicted inputs on which the unit is "
                            "active; in first {} and rank: over resamples of the inputs (a unit drawn at random: {}, "
                            "rank {:.4g} on average)",
                            ranking.top, percent(ranking.random_in_top), ranking.random_rank),
                2);
}

void print_layers(const MeasureRanking& ranking) {
  constexpr size_t kShown = 12;
  Table table{
      {"layer", "units", "mean score", "best", fmt::format("in first {}", ranking.top), "by chance", "highest mean in"},
      "lrrrrrr"};
  for (size_t i = 0; i < std::min(kShown, ranking.layers.size()); ++i) {
    const localise::ScoredLayer& layer = ranking.layers[i];
    table.rows.push_back({layer.layer, with_commas(layer.units), fmt::format("{:.4g}", layer.mean),
                          fmt::format("{:.4g}", layer.best), std::to_string(layer.in_top),
                          fmt::format("{:.1f}", layer.by_chance), percent(layer.first)});
  }
  print("\n");
  print_table(table);
  if (ranking.layers.size() > kShown)
    print("  … and {} more layers (--json has all)\n", ranking.layers.size() - kShown);
  print_wrapped("highest mean in: share of the resamples in which no layer has a higher mean score", 2);
}

/// Where the other measures put the first unit.
void print_others(const LocateResult& found) {
  const std::string& best = found.rankings[0].units[0].unit;
  std::vector<std::string> others;
  for (size_t i = 1; i < found.rankings.size(); ++i)
    others.push_back(fmt::format("{} {}", found.rankings[i].measure, found.rankings[i].rank_of(best)));
  if (others.empty()) return;
  print("\n");
  print_wrapped(fmt::format("rank of {} by other measures: {}", best, join(others, ", ")), 2);
}

/// `--measure all`: a line per measure.
void print_measures(const LocateResult& found) {
  const MeasureRanking& lead = found.rankings[0];
  Table table{{"measure", "first unit", "score", fmt::format("in first {}", lead.top), "rank in resamples",
               fmt::format("shared with {}", lead.measure)},
              "llrrrr",
              2};
  for (const MeasureRanking& one : found.rankings) {
    const ScoredUnit& first = one.units[0];
    int64_t shared = 0;
    for (int64_t i = 0; i < lead.top; ++i) shared += lead.rank_of(one.units[size_t(i)].unit) <= lead.top;
    table.rows.push_back({one.measure, first.unit, fmt::format("{:.4g}", first.score), percent(first.in_top),
                          fmt::format("{}–{}", first.rank_low, first.rank_high), std::to_string(shared)});
  }
  print("\n");
  print_table(table);
}

void print_located(const LocateOptions& options, const LocateResult& found) {
  const MeasureRanking& ranking = found.rankings[0];
  print("{}  on {}{}\n", printable(found.model), printable(found.data),
        found.target.empty() ? "" : ", " + printable(found.target));
  print_parts({fmt::format("{} failing and {} correct inputs", with_commas(found.failing), with_commas(found.passing)),
               fmt::format("{} in {}", counted(found.units, "unit"), counted(int64_t(ranking.layers.size()), "layer")),
               fmt::format("active: above {:g} {} the activation function", options.threshold,
                           options.tap == "pre" ? "before" : "after"),
               fmt::format("{:.2f} s", found.seconds + found.scoring_seconds)},
              2);
  print_wrapped(fmt::format("measure {}: {}; {} resamples", ranking.measure, ranking.formula, ranking.resamples), 2);
  if (ranking.of_counts)
    print_wrapped("af, as: failing (f) and correct (s) inputs on which the unit is active; nf, ns: on which it is not",
                  2);
  if (found.gradients_failing > 0)
    print("  gradients of {} failing and {} correct inputs\n", with_commas(found.gradients_failing),
          with_commas(found.gradients_passing));
  if (found.failing < 10) print("  only {}: the ranking is uncertain\n", counted(found.failing, "failing input"));
  if (4 * found.always_active > found.units && ranking.of_counts)
    print_wrapped(fmt::format("{} of {} units are active on every input, and this measure cannot distinguish them: try "
                              "--tap pre or --measure auto",
                              with_commas(found.always_active), with_commas(found.units)),
                  2);
  print_units(ranking);
  print_layers(ranking);
  found.all ? print_measures(found) : print_others(found);
}

void print_weights(const localise::WeightResult& found, size_t top) {
  print("{}  on {}\n", printable(found.model), printable(found.data));
  print_wrapped(fmt::format("{} that no other weight beats in both forward impact and gradient of the loss, failing "
                            "against correct inputs",
                            counted(int64_t(found.weights.size()), "weight")),
                2);
  Table table{{"unit", "parameter", "index", "value", "impact", "gradient"}, "lllrrr", 3};
  for (size_t i = 0; i < std::min(found.weights.size(), top); ++i) {
    const localise::LocatedWeight& one = found.weights[i];
    table.rows.push_back({one.unit, one.parameter, one.index, fmt::format("{:.4g}", one.value),
                          fmt::format("{:.4g}", one.impact), fmt::format("{:.4g}", one.gradient)});
  }
  print("\n");
  print_table(table);
  if (found.weights.size() > top)
    print("  … and {} more (--top, --json)\n", with_commas(int64_t(found.weights.size() - top)));
  if (!found.passed_over.empty())
    print_wrapped(
        "layers left out (only Conv, Gemm, MatMul, LSTM, GRU and RNN with float weights of their own are "
        "searched): " +
            join(found.passed_over, ", "),
        2);
  print("  next      {}\n", found.next.at(0).text());
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
  mark_partial(json, found.interrupted ? 130 : 0);
  write_file(folder.file("locate.json"), evidence::dump(json, 2));
  session.finish(found.seconds + found.scoring_seconds, found.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
  } else {
    print_located(options, found);
    print("\n  next  {}\n  every unit: {}/ranking.csv\n", found.next.at(0).text(), folder.path());
  }
  if (found.interrupted)
    say(common, fmt::format("stopped: this covers only the first {}", counted(found.inputs, "input")));
  return found.interrupted ? 130 : 0;
}

}  // namespace netmend::app
