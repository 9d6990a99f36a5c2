// planted-faults from names of networks to the summary of its trials.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "faults/kinds.h"
#include "repair/methods.h"
#include "session/split.h"
#include "stats/distributions.h"
#include "stats/intervals.h"
#include "stats/moments.h"
#include "studies/planted.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

struct Share {
  int64_t hits = 0, all = 0;
  void add(bool hit) { hits += hit, ++all; }
  stats::Estimate estimate() const { return stats::rate(hits, all); }
};

/// How much of what the faults cost is won back.
stats::Estimate regained(const std::vector<std::pair<double, double>>& lost_and_won) {
  return stats::bootstrap(int64_t(lost_and_won.size()), 42, [&](std::span<const size_t> drawn) {
    double lost = 0, won = 0;
    for (size_t i : drawn) lost += lost_and_won[i].first, won += lost_and_won[i].second;
    return lost > 0 ? won / lost : 0;
  });
}

/// Of numbers that may be NaN.
struct Mean {
  double sum = 0;
  int64_t count = 0;
  void add(double value) {
    if (std::isfinite(value)) sum += value, ++count;
  }
  Json json() const { return count ? Json(sum / double(count)) : Json(nullptr); }
};

/// Student's interval; the whole range where there is one number.
stats::Estimate interval(const stats::Moments& numbers) {
  if (numbers.count() < 2) return {numbers.mean(), 0, 1};
  const auto n = double(numbers.count());
  const double half = stats::t_quantile_95(n - 1) * std::sqrt(numbers.sample_variance() / n);
  return {numbers.mean(), std::max(0.0, numbers.mean() - half), std::min(1.0, numbers.mean() + half)};
}

Json summary(const std::vector<PlantedTrial>& trials) {
  std::vector<std::string> measures, methods;
  for (const PlantedTrial& trial : trials) {
    for (const auto& [measure, rank] : trial.ranks)
      if (std::find(measures.begin(), measures.end(), measure) == measures.end()) measures.push_back(measure);
    for (const auto& repair : trial.repairs)
      if (std::find(methods.begin(), methods.end(), repair.method) == methods.end()) methods.push_back(repair.method);
  }
  std::set<std::string> groups = {"all"};
  for (const PlantedTrial& trial : trials) groups.insert({"kind " + trial.kind, "network " + trial.network});
  auto belongs = [](const PlantedTrial& trial, const std::string& group) {
    return group == "all" || group == "kind " + trial.kind || group == "network " + trial.network;
  };
  Json rows = Json::array(), repairs = Json::array();
  for (const std::string& group : groups)
    for (const std::string& measure : measures) {
      Share top[3];
      double by_chance[3] = {0, 0, 0};
      std::vector<int64_t> ranks;
      stats::Moments places;  // 0.5 on average for a ranking drawn at random
      for (const PlantedTrial& trial : trials) {
        if (!belongs(trial, group)) continue;
        for (const auto& [name, rank] : trial.ranks) {
          if (name != measure) continue;
          ranks.push_back(rank);
          places.add((double(rank) - 0.5) / double(std::max<int64_t>(trial.units, 1)));
          for (int i = 0; i < 3; ++i) {
            const int64_t n = i == 0 ? 1 : i == 1 ? 5 : 10;
            top[i].add(rank <= n), by_chance[i] += double(n) / double(std::max<int64_t>(trial.units, 1));
          }
        }
      }
      if (ranks.empty()) continue;
      std::sort(ranks.begin(), ranks.end());
      const auto count = double(ranks.size());
      rows.push_back({{"group", group},
                      {"measure", measure},
                      {"faults", ranks.size()},
                      {"top1", top[0].estimate().value},
                      {"top1_low", top[0].estimate().low},
                      {"top1_high", top[0].estimate().high},
                      {"top5", top[1].estimate().value},
                      {"top5_low", top[1].estimate().low},
                      {"top5_high", top[1].estimate().high},
                      {"top10", top[2].estimate().value},
                      {"top10_low", top[2].estimate().low},
                      {"top10_high", top[2].estimate().high},
                      {"median_rank", ranks[ranks.size() / 2]},
                      {"place", places.mean()},
                      {"place_low", interval(places).low},
                      {"place_high", interval(places).high},
                      {"top1_by_chance", by_chance[0] / count},
                      {"top5_by_chance", by_chance[1] / count},
                      {"top10_by_chance", by_chance[2] / count}});
    }
  for (const std::string& group : groups)
    for (const std::string& method : methods) {
      double seconds = 0;
      std::vector<std::pair<double, double>> lost_and_won;
      int64_t count = 0, fixed = 0, broken = 0, enough = 0, repaired = 0;
      double right = 0;
      Share target;
      Mean worst_class, worst_group, sound_mild, sound_pgd, faulty_mild, faulty_pgd, mild, pgd;
      for (const PlantedTrial& trial : trials)
        for (const auto& repair : trial.repairs) {
          if (!belongs(trial, group) || repair.method != method) continue;
          ++count, seconds += repair.seconds;
          lost_and_won.emplace_back(repair.lost, repair.won);
          enough += repair.won >= 0.8 * repair.lost, repaired += repair.verdict == "repaired";
          target.hits += repair.target_fixed, target.all += repair.target;
          if (!repair.kept) continue;
          fixed += repair.fixed, broken += repair.broken, right += repair.right;
          worst_class.add(repair.worst_class), worst_group.add(repair.worst_group);
          sound_mild.add(trial.sound_changes.mild), sound_pgd.add(trial.sound_changes.pgd);
          faulty_mild.add(trial.faulty_changes.mild), faulty_pgd.add(trial.faulty_changes.pgd);
          mild.add(repair.changes.mild), pgd.add(repair.changes.pgd);
        }
      if (!count) continue;
      const stats::Estimate share = regained(lost_and_won);
      repairs.push_back(
          {{"group", group},
           {"method", method},
           {"faults", count},
           {"won_back", share.value},
           {"won_back_low", share.low},
           {"won_back_high", share.high},
           {"won_back_80", double(enough) / double(count)},
           {"repaired", double(repaired) / double(count)},
           {"fixed", repaired ? Json(double(fixed) / double(repaired)) : Json(nullptr)},
           {"broken", repaired ? Json(double(broken) / double(repaired)) : Json(nullptr)},
           {"target_fixed", target.all ? Json(double(target.hits) / double(target.all)) : Json(nullptr)},
           {"broken_share", right > 0 ? Json(double(broken) / right) : Json(nullptr)},
           {"worst_class", worst_class.json()},
           {"worst_group", worst_group.json()},
           {"mild", {{"sound", sound_mild.json()}, {"faulty", faulty_mild.json()}, {"repaired", mild.json()}}},
           {"pgd", {{"sound", sound_pgd.json()}, {"faulty", faulty_pgd.json()}, {"repaired", pgd.json()}}},
           {"seconds", seconds / double(count)}});
    }
  return {{"faults", trials.size()}, {"measures", rows}, {"repairs", repairs}};
}

/// Markdown: which measure ranks the planted unit where, what repairs win back, and what they do besides.
std::string planted_text(const Json& json, const std::string& what) {
  std::string out = fmt::format(
      "# Planted faults\n\n{}\n\n{} faults that cost at least two points of accuracy. Shares in percent, with 95 % "
      "intervals; the place is the mean of rank / units: 0.5 is a ranking drawn at random. Of a damaged layer any of "
      "its units counts. Swapped classes and poisoned labels damage no unit that could be ranked.\n\n"
      "## Table 1: where the planted unit is ranked\n\n",
      what, json["faults"].get<int64_t>());
  auto percent = [](const Json& share, int digits = 0) {
    return share.is_null() ? "–" : fmt::format("{:.{}f}", 100 * share.get<double>(), digits);
  };
  auto range = [&](const Json& row, const std::string& name) {
    return fmt::format("{} [{}, {}]", percent(row[name]), percent(row[name + "_low"]), percent(row[name + "_high"]));
  };
  Table measures({"group", "measure", "faults", "first", "in 5", "in 10", "by chance in 10", "median rank", "place"});
  for (const Json& row : json["measures"])
    measures.row({row["group"], row["measure"], json_text(row["faults"]), range(row, "top1"), range(row, "top5"),
                  range(row, "top10"), percent(row["top10_by_chance"]), json_text(row["median_rank"]),
                  fmt::format("{:.2f} [{:.2f}, {:.2f}]", row["place"].get<double>(), row["place_low"].get<double>(),
                              row["place_high"].get<double>())});
  out +=
      measures.text() + "## Table 2: what repairs win back\n\nFixes and regressions are of repairs that were kept.\n\n";
  auto mean = [](const Json& value) { return value.is_null() ? "–" : fmt::format("{:.0f}", value.get<double>()); };
  Table repairs({"group", "method", "faults", "lost accuracy regained", "regained 80 %", "repaired",
                 "of the target fixed", "fixes", "regressions", "seconds"});
  for (const Json& row : json["repairs"])
    repairs.row({row["group"], row["method"], json_text(row["faults"]), range(row, "won_back"),
                 percent(row["won_back_80"]), percent(row["repaired"]), percent(row["target_fixed"]),
                 mean(row["fixed"]), mean(row["broken"]), fmt::format("{:.1f}", row["seconds"].get<double>())});
  out +=
      repairs.text() +
      "## Table 3: what kept repairs do besides\n\nOf predictions that were correct, the share that became wrong; the "
      "mean change, in points of accuracy, of the class and of the group that did worst; and how many correct "
      "predictions change under small perturbations and under PGD: sound, faulty, repaired.\n\n";
  Table besides({"group", "method", "correct lost %", "worst class", "worst group", "small perturbations %", "PGD %"});
  for (const Json& row : json["repairs"]) {
    auto three = [&](const Json& of) {
      return fmt::format("{}, {}, {}", percent(of["sound"], 1), percent(of["faulty"], 1), percent(of["repaired"], 1));
    };
    besides.row({row["group"], row["method"], percent(row["broken_share"], 2), percent(row["worst_class"], 1),
                 percent(row["worst_group"], 1), three(row["mild"]), three(row["pgd"])});
  }
  return out + besides.text();
}

Sound open_sound(const StudyContext& context, const std::string& text) {
  session::Session session = open_session(context, trained_file(context, text));
  if (!session.task().by_class()) fail("{} does not predict classes", text);
  return {text, session.test().subject, session.task(), session.layers()};
}

}  // namespace

Json run_planted_study(const StudyContext& context, const PlantedRequest& request) {
  PlantedOptions how;
  how.kinds = request.kinds;
  if (how.kinds.empty())
    for (const faults::Kind& kind : faults::kinds()) how.kinds.emplace_back(kind.name);
  for (const std::string& kind : how.kinds) faults::find_kind(kind);
  how.seeds = request.runs, how.seed = context.seed, how.jobs = context.jobs, how.budget = request.budget;
  Budget::parse(how.budget);
  how.repairs = request.repairs, how.targeted = request.targeted;
  refuse_slice(context, request.slice);
  how.slice = parse_slice(request.slice);
  if (how.repairs == std::vector<std::string>{"none"}) how.repairs.clear();
  for (const std::string& method : how.repairs)
    if (method != "auto") repair::find_method(method);
  make_folders(context.folder);
  Store store = open_store(
      context, "planted-faults",
      fmt::format("seed {}, networks {}, kinds {}, runs {}, repairs {} {}{}", context.seed, join(request.models, "+"),
                  join(how.kinds, "+"), how.seeds, how.repairs.empty() ? "none" : join(how.repairs, "+"), how.budget,
                  how.targeted ? ", targeted" : ""),
      kPlantedVersion);
  add_trials(store, request.add, "planted-faults", kPlantedVersion);
  run_planted(
      store, request.models, [&](const std::string& network) { return open_sound(context, network); }, how,
      context.progress);
  Json json = summary(read_planted(store));
  json["out"] = context.folder;
  write_trials(store, context.folder + "/trials.csv");
  write_file(context.folder + "/planted-faults.json", json_text(json, 2) + "\n");
  json["text"] = planted_text(
      json,
      fmt::format("{}: {}, each kind {}, seed {}{}.", join(request.models, ", "), join(how.kinds, ", "),
                  request.runs == 1 ? "once" : fmt::format("{} times", request.runs), context.seed,
                  how.repairs.empty() ? ""
                                      : fmt::format("; repairs {} with budget {}{}", join(how.repairs, ", "),
                                                    how.budget, how.targeted ? ", after the largest confusion" : "")));
  write_file(context.folder + "/planted-faults.md", json["text"].get<std::string>());
  return json;
}

}  // namespace netmend::studies
