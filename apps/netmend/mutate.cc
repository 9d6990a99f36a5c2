// netmend mutate: would the tests notice a bug in the network? Mutants of it, and which of them the tests kill.
#include "mutants/mutate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "netmend/show.h"
#include "observers/figures.h"

namespace netmend::app {
namespace {

using mutants::GroupScore;
using mutants::MutantResult;
using mutants::MutateResult;

constexpr size_t kShown = 12;

std::string percent(double share) { return observers::percent_text(share); }

void print_groups(const std::string& what, const std::vector<GroupScore>& groups, bool words) {
  if (groups.empty()) return;
  Table table{{what, "mutants", "killed", "score", "95 % interval"}, "lrrrl"};
  if (words) table.head.push_back("what it does"), table.align += "l";
  for (size_t i = 0; i < std::min(groups.size(), words ? groups.size() : kShown); ++i) {
    const GroupScore& one = groups[i];
    table.rows.push_back({one.name, with_commas(one.mutants), with_commas(one.killed), percent(one.score.value),
                          fmt::format("{:.1f}–{:.1f} %", 100 * one.score.low, 100 * one.score.high)});
    if (words) table.rows.back().push_back(one.words);
  }
  print("\n");
  print_table(table);
  if (!words && groups.size() > kShown) print("  … and {} more (--json has all)\n", groups.size() - kShown);
}

/// Classes from the one that is killed least.
std::vector<GroupScore> weakest_first(std::vector<GroupScore> groups) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const GroupScore& a, const GroupScore& b) { return a.score.value < b.score.value; });
  return groups;
}

/// Mutants that no test kills although training data shows them to differ, or nobody knows.
void print_survivors(const MutateResult& result) {
  std::vector<std::string> ids;
  for (const MutantResult& one : result.mutants)
    if (!one.killed && !one.equivalent.value_or(false)) ids.push_back(one.id);
  if (ids.empty()) return;
  const size_t all = ids.size();
  if (ids.size() > kShown) ids.resize(kShown);
  print_labelled("survivors",
                 fmt::format("{}{}", join(ids, ", "), all > kShown ? fmt::format(" and {} more", all - kShown) : ""));
}

void print_tests(const MutateResult& result) {
  if (result.kill == "statistical") return;
  const auto few = int64_t(result.smallest.size());
  if (few == 0) return print_labelled("smallest", "no test kills a mutant");
  print_labelled("smallest",
                 fmt::format("{} of the {} tests {} the same score (smallest.csv); {}", with_commas(few),
                             with_commas(result.inputs), few == 1 ? "has" : "have",
                             few == result.fewest ? "no smaller set has"
                                                  : fmt::format("at least {} are needed", with_commas(result.fewest))));
  if (result.unique.empty()) return;
  std::vector<std::string> first;
  for (size_t i = 0; i < std::min<size_t>(5, result.unique.size()); ++i)
    first.push_back(fmt::format("{} ({})", result.unique[i].id, result.unique[i].alone));
  print_labelled("alone",
                 fmt::format("{} {} what no other test kills: {}{}", counted(int64_t(result.unique.size()), "test"),
                             result.unique.size() == 1 ? "kills" : "kill", join(first, ", "),
                             result.unique.size() > first.size() ? " …" : ""));
}

void print_strengths(const MutateResult& result) {
  if (result.strengths.empty()) return;
  Table table{{"inhibitor", "layer", "share", "weakest strength that kills"}, "llrl", 2};
  for (const auto& one : result.strengths)
    table.rows.push_back({one.op, one.layer, percent(one.share),
                          !one.killable  ? "none"
                          : one.monotone ? fmt::format("{:.2f}", one.weakest)
                                         : fmt::format("{:.2f} (not monotone)", one.weakest)});
  print("\n");
  print_table(table);
  if (result.originals == 1)
    print_wrapped("one model: a strength kills by McNemar's test on the inputs; --original adds further trainings", 2);
}

void print_mutated(const MutateResult& result) {
  print("{}  on {}\n", printable(result.model), printable(result.data));
  print_parts({counted(int64_t(result.mutants.size()), "mutant"), counted(result.inputs, "test"),
               fmt::format("accuracy {}", percent(result.accuracy)), fmt::format("{:.1f} s", result.seconds)},
              2);
  print("\n");
  const bool by_class = result.kill == "class" && result.classes > 1;
  print_labelled(
      "score",
      fmt::format("{} ({:.1f}–{:.1f})  {} of {} mutants killed; {}", percent(result.score.value),
                  100 * result.score.low, 100 * result.score.high, with_commas(result.killed),
                  with_commas(result.judged),
                  by_class ? "share of pairs of mutant and class in which a correct prediction becomes wrong"
                  : result.kill == "strict" ? "by any prediction that changes"
                  : result.kill == "statistical"
                      ? fmt::format("by accuracy over {} trainings (p < 0.05, effect of 0.5)", result.originals)
                      : "by a correct prediction that becomes wrong"));
  if (!result.training.empty())
    print_labelled("equivalent",
                   fmt::format("{} {} {} as the model does, with the same loss and outputs: left out of the score",
                               counted(result.equivalent, "mutant"), result.equivalent == 1 ? "predicts" : "predict",
                               counted(result.training_inputs, "training input")));
  if (result.redundant > 0)
    print_labelled("redundant",
                   fmt::format("{} {} every test as another mutant does ({})", counted(result.redundant, "mutant"),
                               result.redundant == 1 ? "predicts" : "predict", counted(result.clusters, "cluster")));
  print_survivors(result);
  print_tests(result);
  print_groups("operator", result.operators, true);
  print_groups("layer", result.layers, false);
  print_groups("class", weakest_first(result.by_class), false);
  print_strengths(result);
  if (!result.without.empty()) {
    std::vector<std::string> names;
    for (const auto& one : result.without) names.push_back(one.first);
    print_wrapped("without a place in this network: " + join(names, ", ") + " (--json says why)", 2);
  }
}

}  // namespace

int mutate(const Common& common, const MutateOptions& options) {
  const mutants::MutateRequest request{options.operators, options.kill, options.sample, options.layers,
                                       options.originals};
  mutants::check_request(request);
  session::Session session(request_of(common, options));
  const Examined examined = examine(common, options, session, "mutate");
  if (examined.stop) return *examined.stop;
  const MutateResult result = mutants::mutate(session, request);
  RunFolder& folder = session.folder("mutate");
  mutants::write_mutants(folder.file("mutants.csv"), result);
  mutants::write_smallest(folder.file("smallest.csv"), result);
  if (!options.product.empty()) mutants::write_mutants(options.product, result);
  Json json = mutants::to_json(result);
  json["preflight"] = evidence::preflight_json(examined.preflight);
  json["run"] = folder.path();
  write_file(folder.file("mutate.json"), evidence::dump(json, 2));
  session.finish(result.seconds, 0);
  if (common.json) return print_json(json), 0;
  print_mutated(result);
  print("\n");
  print_labelled("next", result.next.at(0).text());
  print("  run       {}\n", printable(folder.path()));
  return 0;
}

}  // namespace netmend::app
