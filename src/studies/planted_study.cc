// planted-faults from names of networks to the summary of its trials.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "faults/kinds.h"
#include "repair/methods.h"
#include "session/split.h"
#include "stats/bootstrap.h"
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

/// The ratio of two sums over faults, with the interval of faults drawn again and again; one fault has none.
stats::Estimate ratio(const std::vector<std::pair<double, double>>& whole_and_part) {
  auto of = [&](std::span<const size_t> drawn) {
    double whole = 0, part = 0;
    for (size_t i : drawn) whole += whole_and_part[i].first, part += whole_and_part[i].second;
    return whole > 0 ? part / whole : 0;
  };
  if (whole_and_part.size() < 2) {
    const size_t first = 0;
    return {whole_and_part.empty() ? NAN : of({&first, 1}), NAN, NAN};
  }
  return stats::bootstrap(int64_t(whole_and_part.size()), 42, of);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
void put(Json& row, const std::string& name, const stats::Estimate& estimate) {
  row[name] = number(estimate.value), row[name + "_low"] = number(estimate.low),
  row[name + "_high"] = number(estimate.high);
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

/// Student's interval; none where there is one number.
stats::Estimate interval(const stats::Moments& numbers) {
  if (numbers.count() < 2) return {numbers.mean(), NAN, NAN};
  const auto n = double(numbers.count());
  const double half = stats::t_quantile_95(n - 1) * std::sqrt(numbers.sample_variance() / n);
  return {numbers.mean(), std::max(0.0, numbers.mean() - half), std::min(1.0, numbers.mean() + half)};
}

bool belongs(const PlantedTrial& trial, const std::string& group) {
  return group == "all" || group == "kind " + trial.kind || group == "network " + trial.network;
}

/// Their names, in the order in which trials have them.
std::vector<std::string> methods_of(const std::vector<PlantedTrial>& trials, bool targeted) {
  std::vector<std::string> methods;
  for (const PlantedTrial& trial : trials)
    for (const auto& repair : trial.repairs)
      if (repair.targeted == targeted && std::find(methods.begin(), methods.end(), repair.method) == methods.end())
        methods.push_back(repair.method);
  return methods;
}

const PlantedTrial::Repair* targeted_by(const PlantedTrial& trial, const std::string& method) {
  for (const PlantedTrial::Repair& repair : trial.repairs)
    if (repair.targeted && repair.method == method) return &repair;
  return nullptr;
}

/// Methods that had the same confusions to repair beside each other, and each pair of them fault by fault.
void add_targeted(const std::vector<PlantedTrial>& trials, const std::set<std::string>& groups, Json& json) {
  json["targeted"] = Json::array(), json["targeted_pairs"] = Json::array();
  const std::vector<std::string> methods = methods_of(trials, true);
  for (const std::string& group : groups)
    for (const std::string& method : methods) {
      std::vector<std::pair<double, double>> targets, found, losses, rights, lost_by_found;
      double kept = 0, work = 0, seconds = 0;
      for (const PlantedTrial& trial : trials) {
        const PlantedTrial::Repair* one = targeted_by(trial, method);
        if (!one || !belongs(trial, group)) continue;
        targets.emplace_back(one->target, one->target_fixed), losses.emplace_back(one->lost, one->won);
        rights.emplace_back(one->right, one->kept ? double(one->broken) : 0);
        found.emplace_back(one->target, one->target_right), lost_by_found.emplace_back(one->right, one->broken);
        kept += one->kept, work += one->work, seconds += one->seconds;
      }
      if (targets.empty()) continue;
      const auto count = double(targets.size());
      Json row = {{"group", group}, {"method", method}, {"faults", targets.size()}};
      put(row, "target_fixed", ratio(targets)), put(row, "won_back", ratio(losses)),
          put(row, "broken_share", ratio(rights));
      put(row, "target_right", ratio(found)), put(row, "broken_share_found", ratio(lost_by_found));
      row["kept"] = kept / count, row["work"] = work / count, row["seconds"] = seconds / count;
      json["targeted"].push_back(std::move(row));
    }
  for (const std::string& group : groups)
    for (size_t a = 0; a < methods.size(); ++a)
      for (size_t b = a + 1; b < methods.size(); ++b) {
        int64_t first = 0, second = 0, both = 0;
        for (const PlantedTrial& trial : trials) {
          const PlantedTrial::Repair *one = targeted_by(trial, methods[a]), *other = targeted_by(trial, methods[b]);
          if (!one || !other || !belongs(trial, group)) continue;
          ++both;
          first += one->target_fixed > other->target_fixed, second += other->target_fixed > one->target_fixed;
        }
        if (both > 0)
          json["targeted_pairs"].push_back({{"group", group},
                                            {"first", methods[a]},
                                            {"second", methods[b]},
                                            {"faults", both},
                                            {"first_more", first},
                                            {"second_more", second},
                                            {"p", stats::sign_test(first, second)}});
      }
}

/// By network, what a trial looks at and how long it takes.
Json cost_of(const std::vector<PlantedTrial>& trials) {
  std::map<std::string, std::vector<const PlantedTrial*>> networks;
  for (const PlantedTrial& trial : trials) networks[trial.network].push_back(&trial);
  Json rows = Json::array();
  for (const auto& [network, own] : networks) {
    double drawing = 0, ranking = 0, changes = 0, repairs = 0;
    for (const PlantedTrial* trial : own) {
      drawing += trial->drawing, ranking += trial->ranking, changes += trial->changes;
      for (const auto& repair : trial->repairs) repairs += repair.seconds;
    }
    const PlantedTrial& first = *own.front();
    const auto count = double(own.size());
    rows.push_back({{"network", network},
                    {"tests", first.inputs},
                    {"drawing", first.looked_at.drawing},
                    {"ablation", first.looked_at.ablation},
                    {"mutants", first.looked_at.mutants},
                    {"most_mutants", first.looked_at.most_mutants},
                    {"draws", first.looked_at.draws},
                    {"robustness", first.looked_at.robustness},
                    {"seconds",
                     {{"drawing", drawing / count},
                      {"ranking", ranking / count},
                      {"changes", changes / count},
                      {"repairs", repairs / count}}}});
  }
  return rows;
}

Json summary(const std::vector<PlantedTrial>& trials) {
  std::vector<std::string> measures;
  for (const PlantedTrial& trial : trials)
    for (const auto& [measure, rank] : trial.ranks)
      if (std::find(measures.begin(), measures.end(), measure) == measures.end()) measures.push_back(measure);
  std::vector<std::pair<bool, std::string>> methods;  ///< targeted ones last
  for (bool targeted : {false, true})
    for (const std::string& method : methods_of(trials, targeted)) methods.emplace_back(targeted, method);
  std::set<std::string> groups = {"all"};
  for (const PlantedTrial& trial : trials) groups.insert({"kind " + trial.kind, "network " + trial.network});
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
                      {"place_low", number(interval(places).low)},
                      {"place_high", number(interval(places).high)},
                      {"top1_by_chance", by_chance[0] / count},
                      {"top5_by_chance", by_chance[1] / count},
                      {"top10_by_chance", by_chance[2] / count}});
    }
  for (const std::string& group : groups)
    for (const auto& [targeted, method] : methods) {
      double seconds = 0;
      std::vector<std::pair<double, double>> lost_and_won;
      int64_t count = 0, fixed = 0, broken = 0, enough = 0, repaired = 0;
      double right = 0;
      Share target;
      Mean worst_class, worst_group, sound_mild, sound_pgd, faulty_mild, faulty_pgd, mild, pgd;
      for (const PlantedTrial& trial : trials)
        for (const auto& repair : trial.repairs) {
          if (repair.targeted != targeted || !belongs(trial, group) || repair.method != method) continue;
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
      Json row = {{"group", group}, {"method", method}, {"targeted", targeted}, {"faults", count}};
      put(row, "won_back", ratio(lost_and_won));
      row.update({{"won_back_80", double(enough) / double(count)},
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
      repairs.push_back(std::move(row));
    }
  Json json = {{"faults", trials.size()}, {"measures", rows}, {"repairs", repairs}};
  add_targeted(trials, groups, json);
  json["cost"] = cost_of(trials);
  return json;
}

std::string percent(const Json& share, int digits = 0) {
  return share.is_null() ? "–" : fmt::format("{:.{}f}", 100 * share.get<double>(), digits);
}
/// `95 [91, 98]`; a share of one fault has no interval.
std::string range(const Json& row, const std::string& name, int digits = 0) {
  if (row[name + "_low"].is_null()) return percent(row[name], digits);
  return fmt::format("{} [{}, {}]", percent(row[name], digits), percent(row[name + "_low"], digits),
                     percent(row[name + "_high"], digits));
}

std::string targeted_text(const Json& json) {
  std::string out =
      "## Table 4: repairs of the largest confusion alone\n\nEvery method has the same faults, the same confusion and "
      "the same budget. Fixed: of the confusion's failures on the hold-out set, and lost: of its correct predictions, "
      "by "
      "what was kept, and by what was found, kept or not. A repair is kept where accuracy rises beyond chance and no "
      "class pays. Multiply-adds and seconds that a search took.\n\n";
  Table table({"group", "method", "faults", "fixed", "correct lost", "kept", "fixed by what was found",
               "correct lost by it", "lost accuracy regained", "10^9 multiply-adds", "seconds"});
  for (const Json& row : json["targeted"])
    table.row({row["group"], row["method"], json_text(row["faults"]), range(row, "target_fixed"),
               range(row, "broken_share", 2), percent(row["kept"]), range(row, "target_right"),
               range(row, "broken_share_found", 2), range(row, "won_back"),
               fmt::format("{:.0f}", row["work"].get<double>() / 1e9),
               fmt::format("{:.1f}", row["seconds"].get<double>())});
  out +=
      table.text() +
      "## Table 5: the same, method against method\n\nFaults of which one method fixes more failures of the confusion "
      "than the other; sign test.\n\n";
  Table pairs({"group", "first", "second", "faults", "first fixes more", "second fixes more", "p"});
  for (const Json& row : json["targeted_pairs"])
    pairs.row({row["group"], row["first"], row["second"], json_text(row["faults"]), json_text(row["first_more"]),
               json_text(row["second_more"]), fmt::format("{:.2g}", row["p"].get<double>())});
  return out + pairs.text();
}

/// Markdown: which measure ranks the planted unit where, what repairs win back, and what they do besides.
std::string planted_text(const Json& json, const std::string& what) {
  std::string out = fmt::format(
      "# Planted faults\n\n{}\n\n{} faults that cost at least two points of accuracy. Shares in percent, with 95 % "
      "intervals where there are two faults or more; the place is the mean of rank / units: 0.5 is a ranking drawn at "
      "random. Of a damaged layer any of its units counts. Swapped classes and poisoned labels damage no unit that "
      "could "
      "be ranked.\n\n## Table 1: where the planted unit is ranked\n\n",
      what, json["faults"].get<int64_t>());
  Table measures({"group", "measure", "faults", "first", "in 5", "in 10", "by chance in 10", "median rank", "place"});
  for (const Json& row : json["measures"]) {
    std::string place = fmt::format("{:.2f}", row["place"].get<double>());
    if (!row["place_low"].is_null())
      place += fmt::format(" [{:.2f}, {:.2f}]", row["place_low"].get<double>(), row["place_high"].get<double>());
    measures.row({row["group"], row["measure"], json_text(row["faults"]), range(row, "top1"), range(row, "top5"),
                  range(row, "top10"), percent(row["top10_by_chance"]), json_text(row["median_rank"]), place});
  }
  out +=
      measures.text() + "## Table 2: what repairs win back\n\nFixes and regressions are of repairs that were kept.\n\n";
  auto mean = [](const Json& value) { return value.is_null() ? "–" : fmt::format("{:.0f}", value.get<double>()); };
  Table repairs({"group", "method", "faults", "lost accuracy regained", "regained 80 %", "repaired", "failures fixed",
                 "fixes", "regressions", "seconds"});
  for (const Json& row : json["repairs"])
    if (!row["targeted"].get<bool>())
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
    besides.row({row["group"], row["method"].get<std::string>() + (row["targeted"].get<bool>() ? ", targeted" : ""),
                 percent(row["broken_share"], 2), percent(row["worst_class"], 1), percent(row["worst_group"], 1),
                 three(row["mild"]), three(row["pgd"])});
  }
  out += besides.text();
  if (!json["targeted"].empty()) out += targeted_text(json);
  out +=
      "## Cost: inputs that a trial looks at, and its mean seconds\n\nA network of many multiply-adds gets fewer "
      "inputs. Drawing: tests that faults are drawn on (those of two points there are judged on all), and draws before "
      "a "
      "kind is given up. Ablation and robustness: inputs at most; mutants: how many at most, and on how many "
      "inputs.\n\n";
  Table cost({"network", "tests", "drawing", "draws", "ablation", "mutants", "robustness", "drawing (s)", "ranking (s)",
              "robustness (s)", "repairs (s)"});
  for (const Json& row : json["cost"]) {
    const Json& seconds = row["seconds"];
    auto one = [&](const char* name) { return fmt::format("{:.1f}", seconds[name].get<double>()); };
    cost.row({row["network"], json_text(row["tests"]), json_text(row["drawing"]), json_text(row["draws"]),
              json_text(row["ablation"]), json_text(row["most_mutants"]) + " on " + json_text(row["mutants"]),
              json_text(row["robustness"]), one("drawing"), one("ranking"), one("changes"), one("repairs")});
  }
  return out + cost.text();
}

std::string repairs_words(const PlantedOptions& how) {
  std::string words;
  if (!how.repairs.empty()) words = fmt::format("; repairs {} with budget {}", join(how.repairs, ", "), how.budget);
  if (!how.targeted.empty())
    words += fmt::format("; after the largest confusion {} with budget {} each", join(how.targeted, ", "), how.budget);
  return words;
}

Sound open_sound(const StudyContext& context, const std::string& text, int64_t limit) {
  session::Session session = open_session(context, trained_file(context, text), limit);
  if (!session.task().by_class()) fail("{} does not predict classes", text);
  Sound sound{text, session.test().subject, session.task(), session.layers(), {}};
  sound.rows = predictions_of(sound.subject, sound.settings, context.jobs);
  return sound;
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
  how.repairs = request.repairs, how.targeted = request.targeted, how.limit = request.limit;
  refuse_slice(context, request.slice);
  how.slice = parse_slice(request.slice);
  if (how.repairs == std::vector<std::string>{"none"}) how.repairs.clear();
  for (const auto* methods : {&how.repairs, &how.targeted})
    for (const std::string& method : *methods)
      if (method != "auto") repair::find_method(method);
  make_folders(context.folder);
  Store store = open_store(
      context, "planted-faults",
      fmt::format("seed {}, networks {}, kinds {}, runs {}, repairs {} {}{}", context.seed, join(request.models, "+"),
                  join(how.kinds, "+"), how.seeds, how.repairs.empty() ? "none" : join(how.repairs, "+"), how.budget,
                  (how.targeted.empty() ? "" : ", targeted " + join(how.targeted, "+")) +
                      (how.limit > 0 ? fmt::format(", {} tests", how.limit) : "")),
      kPlantedVersion);
  add_trials(store, request.add, "planted-faults", kPlantedVersion);
  run_planted(
      store, request.models, [&](const std::string& network) { return open_sound(context, network, how.limit); }, how,
      context.progress);
  Json json = summary(read_planted(store));
  json["out"] = context.folder;
  write_trials(store, context.folder + "/trials.csv");
  write_file(context.folder + "/planted-faults.json", json_text(json, 2) + "\n");
  json["text"] = planted_text(
      json, fmt::format("{}: {}, each kind {}, seed {}{}.", join(request.models, ", "), join(how.kinds, ", "),
                        request.runs == 1 ? "once" : fmt::format("{} times", request.runs), context.seed,
                        repairs_words(how)));
  write_file(context.folder + "/planted-faults.md", json["text"].get<std::string>());
  return json;
}

}  // namespace netmend::studies
