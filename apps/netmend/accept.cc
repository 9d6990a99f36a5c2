// netmend accept: findings and inputs that are known. Kept in netmend.toml with a reason, an end and the value of the
// day; a finding returns when it ends or gets clearly worse.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/text.h"
#include "findings/accepted.h"
#include "findings/kinds.h"
#include "findings/phrases.h"
#include "netmend/terminal.h"
#include "session/config.h"
#include "session/input_names.h"
#include "session/run_findings.h"
#include "session/toml_edit.h"

namespace netmend::app {
namespace {

namespace fs = std::filesystem;
using findings::Acceptance;
using session::Config;
using session::Fact;
using session::RunFindings;
using session::toml_key;
using session::toml_string;

std::string toml_path(const Common& common) {
  std::string path = common.config.empty() ? session::find_config("") : common.config;
  return path.empty() ? "netmend.toml" : path;
}

std::string read_if_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) ? session::read_toml(path) : "";
}

std::string key_of(const std::string& id) { return "accept." + toml_key(id); }

/// One entry as it stands in netmend.toml.
Fact entry(const Acceptance& one, bool finding) {
  std::string value = "{ reason = " + toml_string(one.reason);
  if (!one.until.empty()) value += ", until = " + toml_string(one.until);
  if (finding) value += fmt::format(", value = {:.6g}", one.value);
  if (finding && one.factor != Acceptance{}.factor) value += fmt::format(", level = {:g}", one.factor);
  return {key_of(one.id), value + " }", "accepted " + findings::today()};
}

/// Replaces what stands there under the same key; the result must read as it was meant before it is written.
void store(const std::string& path, const Fact& fact) {
  const Lock lock = lock_for_change(path);
  std::string text = read_if_there(path);
  if (!text.empty()) {
    session::parse_config(text, path);
    text = session::trimmed_toml(text, {fact.key}, path);
  }
  text = text.empty() ? session::fresh_toml({fact}, "") : session::updated_toml(text, {fact}, path);
  session::parse_config(text, path);
  write_file(path, text);
}

void check_terms(const AcceptOptions& options, Acceptance& one) {
  one.reason = std::string(trim(options.reason));
  if (one.reason.empty())
    throw InputError("a reason is missing",
                     "Add --reason TEXT; it should still make sense to somebody who reads it next year.");
  one.until = options.until;
  if (!one.until.empty() && !findings::is_day(one.until))
    throw InputError(fmt::format("--until {}: not a date", printable(one.until)), "Write it as 2027-06-30.");
  if (!one.until.empty() && one.until < findings::today())
    throw InputError(fmt::format("--until {}: that day has passed, today is {}", one.until, findings::today()),
                     "Give a date in the future, or leave --until out to accept it without an end.");
  if (options.level.empty()) return;
  std::string_view number = options.level;
  if (number.ends_with("x")) number.remove_suffix(1);
  if (!parse_double(number, one.factor) || !(one.factor >= 1) || one.factor > 1000)
    throw InputError(fmt::format("--level {}: expected a factor from 1 to 1000", printable(options.level)),
                     "1.5x lets the finding return when it is one and a half times as bad as today.");
}

/// How bad a finding is, in what it is measured in; most are shares of inputs, predictions or the metric.
std::string size_words(const findings::Finding& finding) {
  if (finding.kind == "over-confident" || finding.kind == "under-confident")
    return "ECE " + findings::plain(finding.value);
  if (finding.kind == "imbalance")
    return fmt::format("a ratio of {} between the largest and the smallest class", findings::plain(finding.value));
  if (finding.kind == "drift") return "distance " + findings::plain(finding.value);
  if (finding.kind == "biased-numbers") return findings::plain(finding.value) + " standard deviations of the labels";
  const bool share = finding.value >= 0 && finding.value <= 1;
  return share ? findings::percent(finding.value) : findings::plain(finding.value);
}

int accept_finding(const Common& common, const AcceptOptions& options) {
  findings::find_kind(options.what);
  Acceptance one;
  one.id = options.what;
  check_terms(options, one);
  RunFindings run = session::read_findings(options.run);
  const findings::Finding* found = nullptr;
  for (const findings::Finding& finding : run.findings)
    if (finding.id() == one.id) found = &finding;
  if (!found) {
    const findings::Finding* holder = run.find(one.id);
    throw InputError(fmt::format("{} has no finding {}{}", run.folder, printable(one.id),
                                 holder ? "" : did_you_mean(one.id, run.ids())),
                     holder ? "It is part of " + holder->id() + "."
                            : "netmend why lists what the latest check found; netmend check looks again.");
  }
  if (found->level == findings::Level::kBlocker)
    throw InputError(fmt::format("{} is a blocker: nothing else can be trusted while it is there", one.id),
                     "Resolve it; --anyway continues in spite of it, for one run.");
  one.value = found->value;
  const std::string path = toml_path(common);
  store(path, entry(one, true));
  if (common.json)
    return print_json({{"accepted", one.id},
                       {"reason", one.reason},
                       {"until", one.until.empty() ? Json(nullptr) : Json(one.until)},
                       {"value", one.value},
                       {"level", one.factor},
                       {"file", path}}),
           0;
  print("  accepted {} in {}{}\n", printable(one.id), path, one.until.empty() ? "" : " until " + one.until);
  print_wrapped(fmt::format("today: {}", found->brief), 2);
  print_wrapped(one.value > 0 ? fmt::format("it returns when it is clearly worse: more than {:g} times {}", one.factor,
                                            size_words(*found))
                              : "it returns when it is clearly worse than that",
                2);
  return 0;
}

int accept_inputs(const Common& common, const AcceptOptions& options) {
  if (options.file.empty()) throw InputError("no file of inputs is given", "Add --file ambiguous.csv.");
  if (!options.level.empty()) throw InputError("--level is for findings, not for inputs");
  Acceptance one;
  check_terms(options, one);
  const int64_t count = int64_t(session::read_names(options.file).size());
  const std::string path = toml_path(common);
  // Paths in the file are meant from where it lies.
  std::error_code error;
  fs::path folder = fs::absolute(path, error).parent_path();
  fs::path relative = fs::relative(fs::absolute(options.file, error), folder, error);
  one.id = "inputs:" + (error || relative.empty() ? options.file : relative.generic_string());
  store(path, entry(one, false));
  if (common.json)
    return print_json({{"accepted", one.id},
                       {"inputs", count},
                       {"reason", one.reason},
                       {"until", one.until.empty() ? Json(nullptr) : Json(one.until)},
                       {"file", path}}),
           0;
  print("  accepted {} of {} in {}: they are counted separately, never hidden\n", counted(count, "input"),
        printable(options.file), path);
  return 0;
}

Json list_json(const Config& config) {
  Json rows = Json::array();
  auto until = [](const std::string& day) { return day.empty() ? Json(nullptr) : Json(day); };
  for (const Acceptance& one : config.accepted)
    rows.push_back({{"id", one.id},
                    {"reason", one.reason},
                    {"until", until(one.until)},
                    {"value", one.value},
                    {"level", one.factor},
                    {"ended", !one.until.empty() && one.until < findings::today()}});
  for (const session::AcceptedInputs& one : config.accepted_inputs)
    rows.push_back({{"id", "inputs"},
                    {"file", one.file},
                    {"reason", one.reason},
                    {"until", until(one.until)},
                    {"ended", !one.until.empty() && one.until < findings::today()}});
  return rows;
}

int list(const Common& common, const Config& config) {
  Json rows = list_json(config);
  if (common.json) return print_json({{"file", config.path}, {"accepted", rows}}), 0;
  if (rows.empty()) return print("  nothing is accepted{}\n", config.path.empty() ? "" : " in " + config.path), 0;
  for (const Json& row : rows) {
    std::string name =
        row.contains("file") ? "inputs of " + row["file"].get<std::string>() : row["id"].get<std::string>();
    print("  {}  {}{}\n", printable(name), printable(row["reason"].get<std::string>()),
          row["until"].is_null()     ? std::string()
          : row["ended"].get<bool>() ? "  (ended " + row["until"].get<std::string>() + ")"
                                     : "  (until " + row["until"].get<std::string>() + ")");
  }
  return 0;
}

int prune(const Common& common, const AcceptOptions& options, const Config& config) {
  if (config.accepted.empty() && config.accepted_inputs.empty()) return list(common, config);
  const std::string today = findings::today();
  std::vector<std::pair<std::string, std::string>> gone;  // id, why
  if (!config.accepted.empty()) {
    RunFindings run = session::read_findings(options.run);
    if (run.partial)
      throw InputError(
          fmt::format("{} was stopped before its end: what it did not find may still be there", run.folder),
          "Run netmend check to its end, or name another run with --run DIR.");
    for (const Acceptance& stale : findings::split_accepted(run.findings, config.accepted, today).stale)
      gone.emplace_back(stale.id, "no longer occurs in " + run.folder);
  }
  for (const Acceptance& one : config.accepted)
    if (!one.until.empty() && one.until < today &&
        std::none_of(gone.begin(), gone.end(), [&](const auto& g) { return g.first == one.id; }))
      gone.emplace_back(one.id, "ended " + one.until);
  std::vector<std::string> keys;
  for (const auto& [id, why] : gone) keys.push_back(key_of(id));
  const Lock lock = lock_for_change(config.path);
  if (!keys.empty()) write_file(config.path, session::trimmed_toml(session::read_toml(config.path), keys, config.path));
  if (common.json) {
    Json rows = Json::array();
    for (const auto& [id, why] : gone) rows.push_back({{"id", id}, {"why", why}});
    return print_json({{"file", config.path}, {"removed", rows}}), 0;
  }
  for (const auto& [id, why] : gone) print("  removed {}: {}\n", printable(id), printable(why));
  if (gone.empty()) print("  everything that is accepted in {} still occurs\n", config.path);
  return 0;
}

}  // namespace

int accept(const Common& common, const AcceptOptions& options) {
  if (int(options.list) + int(options.prune) + int(!options.what.empty()) != 1)
    throw InputError("accept does one thing at a time",
                     "Name a finding KIND:WHERE, or `inputs`; or --list; or --prune.");
  if (options.list || options.prune) {
    Config config = session::read_config(common.config, "");
    return options.list ? list(common, config) : prune(common, options, config);
  }
  return options.what == "inputs" ? accept_inputs(common, options) : accept_finding(common, options);
}

}  // namespace netmend::app
