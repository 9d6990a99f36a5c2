// netmend inject: bugs in a training program, and who would notice them.
#include "programs/inject.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "netmend/terminal.h"
#include "programs/metric.h"
#include "programs/report.h"

namespace netmend::app {
namespace {

using programs::Analysis;
using programs::InjectResult;
using programs::OutcomeCounts;

constexpr size_t kShown = 8;

std::string counts_cell(const OutcomeCounts& one, const std::string& outcome) {
  const int64_t count = one.of(outcome);
  return count == 0 ? "·" : std::to_string(count);
}

void print_counts(const std::string& head, const std::vector<OutcomeCounts>& rows) {
  Table table{{head, "normal", "crash", "hang", "memory", "killed", "no metric", "all"}, "lrrrrrrr"};
  for (const OutcomeCounts& one : rows) {
    table.rows.push_back({one.name});
    for (const char* outcome : programs::kOutcomes) table.rows.back().push_back(counts_cell(one, outcome));
    table.rows.back().push_back(std::to_string(one.total));
  }
  print("\n");
  print_table(table);
}

std::string change_of(const std::string& diff) {
  std::string before, after;
  for (const std::string& line : split(diff, '\n')) {
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (line.starts_with("-") && before.empty()) before = trim(line.substr(1));
    if (line.starts_with("+") && after.empty()) after = trim(line.substr(1));
  }
  return fmt::format("{}  →  {}", before, after);
}

void print_survivors(const InjectResult& result, const Analysis& analysis) {
  if (analysis.survivors.empty()) return;
  const programs::DoctorScore& doctor = analysis.doctor;
  print("\n");
  print_wrapped(fmt::format("survivors: {} of {} bugs change neither metric nor time noticeably",
                            analysis.survivors.size(), result.bugs.size()),
                2);
  if (doctor.asked > 0) {
    std::string text = fmt::format("{} of {} survivors differ from the clean program for netmend watch and lint",
                                   doctor.caught, doctor.asked);
    if (doctor.changed > 0)
      text += fmt::format("; of those whose metric differs from that of the clean run, {} of {}", doctor.changed_caught,
                          doctor.changed);
    print_wrapped(text, 2);
  }
  for (size_t i = 0; i < std::min(kShown, analysis.survivors.size()); ++i) {
    const programs::Survivor& one = analysis.survivors[i];
    const programs::InjectedBug& bug = result.bugs[one.bug];
    print("  {}  {}\n", bug.id, join(bug.phases, ", "));
    print_wrapped(change_of(bug.diff), 6);
    print_wrapped("would be caught by: " + one.check, 6);
  }
  if (analysis.survivors.size() > kShown) print("  … and {} more (report.md)\n", analysis.survivors.size() - kShown);
}

void print_injected(const InjectResult& result, const Analysis& analysis) {
  const programs::CleanSummary& clean = analysis.clean;
  print("{}  {} of {} possible bugs in {} executed lines of {}\n", printable(result.program), result.bugs.size(),
        with_commas(result.possible), with_commas(result.lines), counted(result.files, "file"));
  print_wrapped(
      clean.deterministic
          ? fmt::format("clean: {}, metric {:.6g} each time, {:.2f} s", counted(clean.runs, "run"), clean.mean,
                        clean.seconds)
          : fmt::format("clean: {}{}, metric {:.6g} ± {:.2g}{}; to detect a change of 1 %, {} runs of each "
                        "version "
                        "would be needed; {:.2f} s",
                        counted(clean.runs, "run"), result.seeded ? " with a seed each" : "", clean.mean,
                        clean.deviation, result.seeded ? "" : ": not deterministic", clean.runs_needed, clean.seconds),
      2);
  if (const std::string text = programs::children_words(result); !text.empty()) print_wrapped(text, 2);
  print_counts("operator", analysis.operators);
  std::vector<OutcomeCounts> phases = analysis.phases;
  phases.push_back(analysis.all);
  print_counts("phase", phases);
  print("\n");
  print("  findings of the paper\n");
  for (const programs::RestatedFinding& one : analysis.findings)
    print_wrapped(fmt::format("{}  {}: {}", one.number, one.claim, one.verdict), 2);
  print_survivors(result, analysis);
}

double seconds_of(const std::string& time) {
  try {
    return parse_seconds(time);
  } catch (const InputError&) {
    fail("--time {}: expected a time such as 90s, 30m, 2h", printable(time));
  }
}

programs::InjectRequest request_of(const Common& common, const InjectOptions& options, const std::string& folder) {
  programs::InjectRequest request;
  request.program = options.program, request.arguments = options.arguments, request.python = options.python;
  request.metric = options.metric, request.operators = options.operators, request.also = options.also;
  request.environment = options.environment, request.writable = options.writable;
  request.per_file = options.per_file, request.sample = options.sample, request.clean_runs = options.clean_runs;
  request.doctor = options.doctor;
  request.seed = common.seed, request.jobs = common.jobs;
  request.most_seconds = options.time.empty() ? 0 : seconds_of(options.time);
  if (!common.memory.empty()) request.memory = parse_bytes(common.memory);
  request.unsafe = options.unsafe, request.quiet = common.quiet, request.folder = folder;
  request.note = [&common](const std::string& line) { say(common, line); };
  return request;
}

}  // namespace

int inject(const Common& common, const InjectOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  programs::parse_metric(options.metric);
  RunFolder folder(common.out, "inject", common.arguments);
  const InjectResult result = programs::inject(request_of(common, options, folder.path()));
  const Analysis analysis = programs::analyse(result);
  Json json = programs::to_json(result, analysis);
  json["run"] = folder.path();
  write_file(folder.file("inject.json"), json_text(json, 2));
  write_file(folder.file("report.md"), programs::report_text(result, analysis));
  programs::write_bugs(folder.file("bugs.csv"), result, analysis);
  for (const auto& [name, svg] : programs::figures(result, analysis)) write_file(folder.file(name), svg);
  folder.finish(common.seed, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 0);
  if (common.json) return print_json(json), 0;
  print_injected(result, analysis);
  print("\n  report    {}\n", printable(folder.path() + "/report.md"));
  return 0;
}

}  // namespace netmend::app
