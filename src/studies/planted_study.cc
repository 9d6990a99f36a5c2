// planted-faults from names of networks to the summary of its trials.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "faults/kinds.h"
#include "repair/methods.h"
#include "session/split.h"
#include "stats/distributions.h"
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
  double value() const { return all ? double(hits) / double(all) : 0; }
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
                      {"top1", top[0].value()},
                      {"top5", top[1].value()},
                      {"top10", top[2].value()},
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
      double won = 0, lost = 0, seconds = 0;
      int64_t count = 0, fixed = 0, broken = 0, enough = 0, repaired = 0;
      for (const PlantedTrial& trial : trials)
        for (const auto& repair : trial.repairs) {
          if (!belongs(trial, group) || repair.method != method) continue;
          ++count, won += repair.won, lost += repair.lost, seconds += repair.seconds, fixed += repair.fixed,
              broken += repair.broken;
          enough += repair.won >= 0.8 * repair.lost, repaired += repair.verdict == "repaired";
        }
      if (count)
        repairs.push_back({{"group", group},
                           {"method", method},
                           {"faults", count},
                           {"won_back", lost > 0 ? won / lost : 0},
                           {"won_back_80", double(enough) / double(count)},
                           {"repaired", double(repaired) / double(count)},
                           {"fixed", double(fixed) / double(count)},
                           {"broken", double(broken) / double(count)},
                           {"seconds", seconds / double(count)}});
    }
  return {{"faults", trials.size()}, {"measures", rows}, {"repairs", repairs}};
}

/// Markdown: which measure ranks the planted unit where, and what repairs win back.
std::string planted_text(const Json& json) {
  std::string out = fmt::format(
      "# Planted faults\n\n{} faults that cost at least two points of accuracy. Shares in percent; the place is the "
      "mean "
      "of rank / units with its 95 % interval: 0.5 is a ranking drawn at random.\n\n## Where the planted unit is "
      "ranked\n\n",
      json["faults"].get<int64_t>());
  auto percent = [](const Json& share) { return fmt::format("{:.0f}", 100 * share.get<double>()); };
  Table measures({"group", "measure", "faults", "first", "in 5", "in 10", "by chance in 10", "median rank", "place"});
  for (const Json& row : json["measures"])
    measures.row({row["group"], row["measure"], json_text(row["faults"]), percent(row["top1"]), percent(row["top5"]),
                  percent(row["top10"]), percent(row["top10_by_chance"]), json_text(row["median_rank"]),
                  fmt::format("{:.2f} [{:.2f}, {:.2f}]", row["place"].get<double>(), row["place_low"].get<double>(),
                              row["place_high"].get<double>())});
  out += measures.text() + "## What repairs win back\n\n";
  Table repairs({"group", "method", "faults", "lost accuracy regained", "regained 80 %", "repaired", "fixes",
                 "regressions", "seconds"});
  for (const Json& row : json["repairs"])
    repairs.row({row["group"], row["method"], json_text(row["faults"]), percent(row["won_back"]),
                 percent(row["won_back_80"]), percent(row["repaired"]),
                 fmt::format("{:.0f}", row["fixed"].get<double>()), fmt::format("{:.0f}", row["broken"].get<double>()),
                 fmt::format("{:.1f}", row["seconds"].get<double>())});
  return out + repairs.text();
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
    for (const faults::Kind& kind : faults::kinds())
      if (kind.of == faults::Kind::kUnit) how.kinds.emplace_back(kind.name);
  for (const std::string& kind : how.kinds) faults::find_kind(kind);
  how.seeds = request.runs, how.seed = context.seed, how.jobs = context.jobs, how.budget = request.budget;
  Budget::parse(how.budget);
  how.repairs = request.repairs;
  if (how.repairs == std::vector<std::string>{"none"}) how.repairs.clear();
  for (const std::string& method : how.repairs)
    if (method != "auto") repair::find_method(method);
  make_folders(context.folder);
  Store store(context.folder + "/trials.db", "planted-faults", kPlantedVersion);
  for (const std::string& network : request.models)
    run_planted(store, open_sound(context, network), how, context.progress);
  Json json = summary(read_planted(store));
  json["out"] = context.folder;
  write_trials(store, context.folder + "/trials.csv");
  write_file(context.folder + "/planted-faults.json", json_text(json, 2) + "\n");
  json["text"] = planted_text(json);
  return json;
}

}  // namespace netmend::studies
