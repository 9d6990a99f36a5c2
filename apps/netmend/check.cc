// netmend check: everything that fits a model and its data, as findings.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/escape.h"
#include "base/text.h"
#include "evidence/check_run.h"
#include "evidence/identity.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using findings::Finding;
using findings::Level;

int list_checks(const Common& common) {
  if (common.json) {
    Json json = {{"checks", Json::array()}};
    for (const checks::Check& row : checks::checks())
      json["checks"].push_back({{"name", row.name},
                                {"about", row.about},
                                {"kinds", row.kinds},
                                {"needs", findings::needs_words(row.needs)}});
    return print_json(json), 0;
  }
  size_t width = 0;
  for (const checks::Check& row : checks::checks()) width = std::max(width, row.name.size());
  for (const checks::Check& row : checks::checks()) {
    print("  {:<{}}  ", row.name, width);
    print_wrapped(fmt::format("{} (needs {})", row.about, findings::needs_words(row.needs)), width + 4, width + 4);
  }
  return 0;
}

/// Notes are counted; everything else is shown with its whole text.
void print_findings(const evidence::CheckRun& run, const std::string& folder) {
  std::vector<const Finding*> shown;
  for (const Finding& finding : run.findings)
    if (finding.level > Level::kNote) shown.push_back(&finding);
  size_t ids = 0;
  for (const Finding* finding : shown) ids = std::max(ids, text_columns(printable(finding->id())));
  ids = std::min<size_t>(ids, 40);
  for (const Finding* finding : shown) {
    const std::string id = printable(finding->id());
    print("  ");
    print_weighted(fmt::format("{:<8}", level_name(finding->level)), finding->level >= Level::kSerious);
    print(" {}", id);
    const size_t used = 11 + text_columns(id);
    const bool same_line = terminal_width() >= ids + 50 && text_columns(id) <= ids;
    print("{}", same_line ? std::string(ids - text_columns(id) + 2, ' ') : "\n" + std::string(11, ' '));
    print_wrapped(fmt::format("{} ({})", finding->brief, certainty_name(finding->certainty)), same_line ? 13 + ids : 11,
                  same_line ? std::max(13 + ids, used + 2) : 11);
  }
  std::vector<std::string> more;
  if (const size_t notes = run.findings.size() - shown.size(); notes > 0)
    more.push_back(
        fmt::format("{}: {}", counted(int64_t(notes), "note"), Shell::of("netmend why --run {}", folder).text()));
  if (!run.known.accepted.empty())
    more.push_back(
        fmt::format("{}: netmend accept --list", counted(int64_t(run.known.accepted.size()), "accepted finding")));
  if (!run.known.stale.empty())
    more.push_back(fmt::format("{} that no longer {}: netmend accept --prune",
                               counted(int64_t(run.known.stale.size()), "accepted finding"),
                               run.known.stale.size() == 1 ? "occurs" : "occur"));
  for (const std::string& line : more) print("  {}{}\n", shown.empty() ? "" : "+ ", line);
  for (const findings::Returned& one : run.known.returned)
    print_wrapped(fmt::format("no longer accepted: {} ({})", one.acceptance.id, one.why), 2);
  if (!shown.empty() || !more.empty()) print("\n");
}

/// What needs the same thing stands together; names hold commas, so something else stands between them.
void print_skipped(const std::vector<checks::Skipped>& skipped) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const checks::Skipped& one : skipped) {
    auto hit = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == one.enable; });
    if (hit == groups.end()) hit = groups.insert(groups.end(), {one.enable, {}});
    hit->second.push_back(one.what);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    print_labelled(i == 0 ? "skipped" : "", join(groups[i].second, " · "));
    print_wrapped("needs " + groups[i].first, 14);
  }
}

void print_run(const evidence::CheckRun& run, session::Session& session) {
  print("\n");
  print_wrapped(run.verdict, 2);
  if (!run.numbers.empty()) print_wrapped(run.numbers, 2);
  print("\n");
  print_findings(run, session.folder("check").path());
  auto line = [](const char* name, const std::string& text) {
    if (!text.empty()) print_labelled(name, text);
  };
  line("tests", run.coverage);
  if (!run.passed.empty()) line("passed", counted(int64_t(run.passed.size()), "check"));
  print_skipped(run.skipped);
  if (session.budget().timed())
    line("budget", session.budget().name() + ": by the clock, so results may differ from run to run");
  if (!run.findings.empty() && run.findings[0].level > Level::kNote) {
    print("\n  next      {}\n", Shell::of("netmend why {}", run.findings[0].id()).text());
    if (!run.findings[0].next.empty()) print("            {}\n", run.findings[0].next[0].text());
  }
  if (!session.has_data())
    print("  data      {}\n", Shell::of("netmend init {} --data SPEC", session.model_name()).text());
  print("  report    {}\n", run.report);
}

/// What the exit status is and why; a serious finding never goes with 0 without a word.
std::string exit_words(const evidence::CheckRun& run, const std::string& fail_on, int status) {
  auto from = [&](Level level) {
    return std::count_if(run.findings.begin(), run.findings.end(), [&](const Finding& f) { return f.level >= level; });
  };
  if (run.interrupted) return fmt::format("{}: stopped before the end", status);
  if (status != 0) {
    const Level bar = findings::parse_level(fail_on);
    const int64_t count = from(bar);
    return fmt::format("{}: {} at level {}{} (--fail-on {})", status, counted(count, "finding"), fail_on,
                       bar == Level::kBlocker ? "" : " or above", fail_on);
  }
  for (Level level : {Level::kBlocker, Level::kSerious})
    if (const int64_t count = from(level); count > 0)
      return fmt::format("0 in spite of {} (--fail-on {}); with --fail-on {} it would be 1",
                         counted(count, level == Level::kBlocker ? "blocker" : "serious finding"), fail_on,
                         level_name(level));
  return fail_on == "never"
             ? "0: --fail-on never"
             : fmt::format("0: no finding at level {}{}", fail_on, fail_on == "blocker" ? "" : " or above");
}

void print_identity(session::Session& session) {
  std::vector<std::string> parts = {printable(evidence::identity(session))};
  if (session.has_data()) {  // which is opened here: what is wrong with it must not cut the line
    parts.push_back("test " + with_commas(evidence::inputs_of(session, "test")));
    if (int64_t train = evidence::inputs_of(session, "train"); train > 0)
      parts.push_back("train " + with_commas(train));
  }
  print_parts(parts, 0);
}

}  // namespace

int check(const Common& common, const CheckOptions& options) {
  if (options.list) return list_checks(common);
  const auto start = std::chrono::steady_clock::now();
  session::Session session(request_of(common, options));
  if (!common.json) print_identity(session);
  checks::CheckupRequest request;
  request.only = options.only, request.skip = options.skip;
  request.reference = options.reference, request.anyway = options.anyway;
  if (!common.json)
    request.on_preflight = [&](const preflight::Preflight& found) {
      print_preflight(found, session.task().metric, options.anyway ? OnBlocker::kGoOn : OnBlocker::kDataOnly);
    };
  evidence::CheckRun run =
      evidence::run_check(session, request, {!options.no_images, options.latency, options.programs});
  const int status = run.exit_status(options.fail_on);
  session.finish(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), status);
  if (common.json) {
    run.document["run"] = session.folder("check").path();
    run.document["report"] = run.report;
    return print_json(run.document), status;
  }
  print_run(run, session);
  print_labelled("exit", exit_words(run, options.fail_on, status));
  if (run.interrupted) say(common, "stopped: these are the results so far");
  return status;
}

}  // namespace netmend::app
