// netmend diagnose: what the record of a training run shows.
#include "netmend/diagnose.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_search.h"
#include "base/sparkline.h"
#include "base/text.h"
#include "findings/phrases.h"
#include "session/toml.h"

namespace netmend::app {
namespace {

using diagnosis::Diagnosis;
using findings::Finding;
using findings::Level;

void print_curves(std::FILE* out, const diagnosis::Run& run) {
  auto line = [&](const char* name, const std::vector<double>& values) {
    if (values.size() < 2) return;
    print(out, "  {:<14}{}  {} → {}\n", name, sparkline(values), findings::plain(values.front()),
          findings::plain(values.back()));
  };
  line("loss", run.losses);
  line("val. loss", run.val_losses);
  line("accuracy", run.accuracies);
  line("val. accuracy", run.val_accuracies);
}

int list_rules(const Common& common) {
  const diagnosis::Thresholds thresholds;
  if (common.json) {
    return print_json(diagnosis::rules_json(thresholds)), 0;
  }
  Table table{{"rule", "symptom", "points to", "thresholds"}, "llll"};
  for (const diagnosis::Rule& rule : diagnosis::rules()) {
    std::vector<std::string> limits;
    for (const std::string& name : split(rule.threshold, ','))
      limits.push_back(rule.threshold == "exact"
                           ? "exact"
                           : fmt::format("{} = {}", trim(name), findings::plain(thresholds[std::string(trim(name))])));
    table.rows.push_back({fmt::format("{}/{}", rule.set, rule.name), std::string(rule.symptom), std::string(rule.kind),
                          join(limits, ", ")});
  }
  print_table(table);
  return 0;
}

int compare_trainings(const Common& common, const DiagnoseOptions& options, const std::string& name,
                      const diagnosis::Thresholds& thresholds) {
  const std::string other = find_run(options.against);
  const records::Record before = records::read_record(other), after = records::read_record(name);
  const diagnosis::Run a = diagnosis::digest(before), b = diagnosis::digest(after);
  const Diagnosis was = diagnosis::diagnose(before, thresholds, options.rules, other),
                  is = diagnosis::diagnose(after, thresholds, options.rules, name);
  const std::vector<std::string> gone = diagnosis::only_in(was, is), fresh = diagnosis::only_in(is, was);
  const int64_t differs = diagnosis::first_difference(a, b);
  if (common.json) {
    print_json(diagnosis::comparison_json(other, was, name, is, differs));
    return status_of(is, options.fail_on);
  }
  Table table{{"", printable(other), printable(name)}, "lrr"};
  for (const auto& [key, value] : was.summary.items()) {
    auto text = [&](const Json& one) {
      return one.is_number_float() ? findings::plain(one.get<double>())
             : one.is_string()     ? one.get<std::string>()
                                   : json_text(one);
    };
    table.rows.push_back({key, printable(text(value)), printable(text(is.summary[key]))});
  }
  print_table(table);
  if (!a.step_losses.empty() && !b.step_losses.empty())
    print("\n  {}\n", differs ? fmt::format("the losses differ from step {} on", differs)
                              : "the losses are the same in every step");
  for (const std::string& id : gone) print("  gone     {}\n", printable(id));
  for (const std::string& id : fresh) print("  new      {}\n", printable(id));
  return status_of(is, options.fail_on);
}

int follow(const Common& common, const DiagnoseOptions& options, const std::string& run,
           const diagnosis::Thresholds& thresholds) {
  std::set<std::string> told;
  int64_t steps = -1;
  while (true) {
    const records::Record record = records::read_record(run);
    const Diagnosis now = diagnosis::diagnose(record, thresholds, options.rules, run);
    for (const Finding& finding : now.findings)
      if (finding.level > Level::kNote && told.insert(finding.id()).second)
        print("  step {:>8}  {:<8} {}: {}\n", now.summary["steps"].get<int64_t>(), level_name(finding.level),
              finding.id(), finding.brief);
    if (const int64_t at = now.summary["steps"].get<int64_t>(); at != steps && !common.quiet)
      tell(fmt::format("  step {}: loss {}", steps = at, json_text(now.summary["last_loss"])));
    std::fflush(stdout);
    if (!record.cut) return status_of(now, options.fail_on);
    for (int i = 0; i < 10; ++i) usleep(100'000), stop_if_interrupted();
  }
}

}  // namespace

std::string find_run(const std::string& name) {
  const std::string found = find_run_with("record.jsonl", name);
  if (found.empty())
    throw InputError("no run in netmend-runs has the record of a training",
                     "netmend watch -- python train.py writes one; or name its folder: netmend diagnose RUN");
  return found;
}

diagnosis::Thresholds read_thresholds(const std::string& file) {
  diagnosis::Thresholds thresholds;
  if (file.empty()) return thresholds;
  const toml::table table = session::parse_toml(read_file(file, 1 << 20), file);
  for (const auto& [key, value] : table) {
    const auto number = value.value<double>();
    if (!number || !std::isfinite(*number)) fail("{}: `{}` is not a number", file, std::string(key.str()));
    thresholds.set(std::string(key.str()), *number);
  }
  return thresholds;
}

void print_diagnosis(std::FILE* out, const Diagnosis& diagnosis, const records::Record& record) {
  const diagnosis::Run run = diagnosis::digest(record);
  print(out, "  {} steps, {}{}{}\n", with_commas(run.steps), counted(int64_t(record.epochs.size()), "epoch"),
        run.optimizer.empty() ? "" : ", " + printable(run.optimizer),
        std::isfinite(run.rate) ? fmt::format(" at {}", findings::plain(run.rate)) : "");
  print_curves(out, run);
  print(out, "\n");
  size_t notes = 0, shown = 0;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.level == Level::kNote) {
      ++notes;
      continue;
    }
    ++shown;
    print(out, "  {:<8} {}\n", level_name(finding.level), printable(finding.id()));
    print(out, "           {}\n", printable(finding.title));
    print(out, "           {} ({})\n", printable(finding.evidence), certainty_name(finding.certainty));
  }
  if (shown == 0) print(out, "  Nothing was found that is wrong for certain or likely.\n");
  for (const Finding& finding : diagnosis.findings)
    if (finding.level == Level::kNote)
      print(out, "  note     {}: {}\n", printable(finding.id()), printable(finding.brief));
  if (!diagnosis.second_opinion.empty() && diagnosis.second_opinion[0].second >= 0.5 && !diagnosis.is_confirmed())
    print(out, "  opinion  {}: {} of the votes of a forest that was trained on planted faults\n",
          diagnosis.second_opinion[0].first == "none" ? "nothing wrong" : diagnosis.second_opinion[0].first,
          findings::percent(diagnosis.second_opinion[0].second));
  for (const std::string& trouble : diagnosis.troubles) print(out, "  unknown  {}\n", printable(trouble));
  if (shown > 0) print(out, "\n  next     netmend why {}\n", printable(diagnosis.findings.front().kind));
}

int status_of(const Diagnosis& diagnosis, const std::string& fail_on) {
  return fail_on != "never" && diagnosis.reaches(findings::parse_level(fail_on)) ? 1 : 0;
}

int diagnose_run(const Common& common, const DiagnoseOptions& options) {
  if (options.list) return list_rules(common);
  if (options.fail_on != "never") findings::parse_level(options.fail_on);
  const diagnosis::Thresholds thresholds = read_thresholds(options.thresholds);
  const std::string run = find_run(options.run);
  if (!options.against.empty()) return compare_trainings(common, options, run, thresholds);
  if (options.live) return follow(common, options, run, thresholds);
  const records::Record record = records::read_record(run);
  const Diagnosis found = diagnosis::diagnose(record, thresholds, options.rules, run);
  if (common.json)
    print_json(diagnosis::diagnosis_json(found, run));
  else {
    print("{}\n", printable(run));
    print_diagnosis(stdout, found, record);
  }
  return status_of(found, options.fail_on);
}

}  // namespace netmend::app
