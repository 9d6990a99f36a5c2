// netmend diagnose: what the record of a training run shows.
#include "netmend/diagnose.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "findings/phrases.h"
#include "session/toml.h"

namespace netmend::app {
namespace {

using diagnosis::Diagnosis;
using findings::Finding;
using findings::Level;

constexpr const char* kRuns = "netmend-runs";

/// A folder, a file, or the name of a run in netmend-runs; without a name the newest that has a record.
std::string find_run(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!name.empty()) {
    if (fs::exists(name, error) || !fs::exists(fs::path(kRuns) / name, error)) return name;
    return (fs::path(kRuns) / name).string();
  }
  std::string best;
  for (fs::directory_iterator entry(kRuns, error), end; !error && entry != end; entry.increment(error))
    if (fs::exists(entry->path() / "record.jsonl", error)) best = std::max(best, entry->path().filename().string());
  if (best.empty())
    throw InputError(fmt::format("no run in {} has the record of a training", kRuns),
                     "netmend watch -- python train.py writes one; or name its folder: netmend diagnose RUN");
  return (fs::path(kRuns) / best).string();
}

/// A curve in one line.
std::string spark(const std::vector<double>& values) {
  static const char* bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = INFINITY, high = -INFINITY;
  for (double value : values)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  std::string text;
  const size_t count = std::min<size_t>(values.size(), 32);
  for (size_t i = 0; i < count; ++i) {
    const double value = values[i * values.size() / count];
    if (!std::isfinite(value))
      text += "×";
    else
      text += bars[std::min(7, int(8 * (high > low ? (value - low) / (high - low) : 0)))];
  }
  return text;
}

void print_curves(std::FILE* out, const diagnosis::Run& run) {
  auto line = [&](const char* name, const std::vector<double>& values) {
    if (values.size() < 2) return;
    print(out, "  {:<14}{}  {} → {}\n", name, spark(values), findings::plain(values.front()),
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
    Json rows = Json::array(), values = Json::object();
    for (const diagnosis::Rule& rule : diagnosis::rules())
      rows.push_back({{"set", rule.set},
                      {"name", rule.name},
                      {"symptom", rule.symptom},
                      {"quantity", rule.quantity},
                      {"threshold", rule.threshold},
                      {"kind", rule.kind},
                      {"paper", rule.paper}});
    for (const auto& [name, value] : thresholds.all()) values[name] = value;
    return print_json({{"rules", rows}, {"thresholds", values}}), 0;
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

std::vector<std::string> only_in(const Diagnosis& a, const Diagnosis& b) {
  std::vector<std::string> ids;
  for (const Finding& one : a.findings)
    if (one.level > Level::kNote && std::none_of(b.findings.begin(), b.findings.end(), [&](const Finding& f) {
          return f.kind == one.kind && f.level > Level::kNote;
        }))
      ids.push_back(one.id());
  return ids;
}

int compare_trainings(const Common& common, const DiagnoseOptions& options, const std::string& name,
                      const diagnosis::Thresholds& thresholds) {
  const std::string other = find_run(options.against);
  const records::Record before = records::read_record(other), after = records::read_record(name);
  const diagnosis::Run a = diagnosis::digest(before), b = diagnosis::digest(after);
  const Diagnosis was = diagnosis::diagnose(before, thresholds, options.rules, other),
                  is = diagnosis::diagnose(after, thresholds, options.rules, name);
  const std::vector<std::string> gone = only_in(was, is), fresh = only_in(is, was);
  const int64_t differs = diagnosis::first_difference(a, b);
  if (common.json) {
    print_json({{"before", {{"run", other}, {"summary", was.summary}}},
                {"after", {{"run", name}, {"summary", is.summary}}},
                {"first_difference", differs},
                {"gone", gone},
                {"new", fresh}});
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

Json diagnosis_json(const Diagnosis& diagnosis, const std::string& run) {
  Json json = {{"run", run},
               {"summary", diagnosis.summary},
               {"findings", Json::array()},
               {"rules", Json::array()},
               {"unknown", diagnosis.troubles}};
  for (const Finding& finding : diagnosis.findings) json["findings"].push_back(findings::to_json(finding));
  for (const diagnosis::Fired& one : diagnosis.fired)
    json["rules"].push_back({{"rule", fmt::format("{}/{}", one.rule->set, one.rule->name)},
                             {"fired", one.alarms > 0},
                             {"kind", one.rule->kind},
                             {"paper", one.rule->paper}});
  return json;
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
  for (const std::string& trouble : diagnosis.troubles) print(out, "  unknown  {}\n", printable(trouble));
  if (shown > 0) print(out, "\n  next     {}\n", Shell::of("netmend why {}", diagnosis.findings.front().kind).text());
}

int status_of(const Diagnosis& diagnosis, const std::string& fail_on) {
  if (fail_on == "never") return 0;
  const Level bar = findings::parse_level(fail_on);
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [&](const Finding& f) { return f.level >= bar; })
             ? 1
             : 0;
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
    print_json(diagnosis_json(found, run));
  else {
    print("{}\n", printable(run));
    print_diagnosis(stdout, found, record);
  }
  return status_of(found, options.fail_on);
}

}  // namespace netmend::app
