// netmend diagnose: what the record of a training run shows.
#include "netmend/diagnose.h"

#include <fmt/format.h>
#include <unistd.h>

#include <set>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/run_search.h"
#include "base/text.h"
#include "diagnosis/training_page.h"
#include "findings/phrases.h"
#include "report/page.h"
#include "session/toml.h"

namespace netmend::app {
namespace {

using diagnosis::Diagnosis;
using findings::Finding;
using findings::Level;

int list_rules(const Common& common) {
  const diagnosis::Thresholds thresholds;
  if (common.json) return print_json(diagnosis::rules_json(thresholds)), 0;
  print_table({{"rule", "symptom", "points to", "thresholds"}, "llll", 1, 2, diagnosis::rule_rows(thresholds)});
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
  print_table({{"", printable(other), printable(name)}, "lrr", 1, 2, diagnosis::comparison_rows(was, is)});
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
  for (const std::string& line : diagnosis::training_screen(record, diagnosis)) {
    const size_t margin = std::min(line.find_first_not_of(' '), line.size());
    print_wrapped(line.substr(margin), margin, 0, out);
  }
}

void write_training_page(const std::string& folder, const records::Record& record, const Diagnosis& found,
                         const std::vector<std::string>& command) {
  write_file(folder + "/" + report::kEvidence,
             json_text(diagnosis::training_report(record, found, join(command, " "), folder)));
  report::write_page(folder);
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
  if (!options.page.empty())
    write_file(options.page, report::draw_page(json_text(diagnosis::training_report(record, found, "", run)), run));
  if (common.json)
    print_json(diagnosis::diagnosis_json(found, run));
  else {
    print("{}\n", printable(run));
    print_diagnosis(stdout, found, record);
  }
  return status_of(found, options.fail_on);
}

}  // namespace netmend::app
