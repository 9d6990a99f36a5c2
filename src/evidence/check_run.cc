#include "evidence/check_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "checks/checkup.h"
#include "checks/programs.h"
#include "evidence/run_report.h"
#include "observers/figures.h"
#include "session/latency.h"

namespace netmend::evidence {
namespace {

using checks::Checkup;

/// The metric, the worst class, the failures.
std::string numbers_line(const Checkup& checkup) {
  if (!checkup.seen || !checkup.seen->test || checkup.seen->test->result.metrics.empty()) return "";
  const observers::PredictionResult& result = checkup.seen->test->result;
  std::string text = fmt::format("{} {}", result.metrics[0].name,
                                 observers::figure_text(result.metrics[0].name, result.metrics[0].estimate));
  if (const observers::ClassResult* worst = observers::worst_class(result))
    text += fmt::format("   worst class {}: {:.1f} %", printable(worst->name), 100 * worst->recall);
  const int64_t failures = result.samples - result.correct;
  if (checkup.seen->settings.has_right_and_wrong())
    text += fmt::format("   {} failure{}", with_commas(failures), failures == 1 ? "" : "s");
  return text;
}

std::string coverage_line(const Checkup& checkup) {
  if (!checkup.seen || !checkup.seen->adequacy) return "";
  const adequacy::Assessment& tests = *checkup.seen->adequacy;
  std::vector<std::string> parts;
  if (tests.highs_judged && !tests.low_units.empty())
    parts.push_back(fmt::format("{} of {} units never {} activations as high as in training",
                                with_commas(int64_t(tests.low_units.size())), with_commas(checkup.seen->space->units()),
                                tests.low_units.size() == 1 ? "reaches" : "reach"));
  return join(parts, "; ");
}

}  // namespace

int CheckRun::exit_status(const std::string& fail_on) const {
  if (interrupted) return 130;
  if (fail_on == "never") return 0;
  const findings::Level bar = findings::parse_level(fail_on);
  return std::any_of(findings.begin(), findings.end(), [&](const auto& one) { return one.level >= bar; }) ? 1 : 0;
}

CheckRun run_check(session::Session& session, const checks::CheckupRequest& request, const CheckRunOptions& options) {
  const std::vector<std::string> programs = checks::programs_to_run(options.programs);
  Checkup checkup = checks::check_up(session, request);
  ReportOptions how;
  how.pictures = options.pictures;
  if (options.latency && session.has_data() && !checkup.blocked)
    how.latency = session::measure_latency(session).figures;
  CheckRun run;
  run.report = write_report(session, checkup, how);
  if (!programs.empty() && !checkup.interrupted) {
    checks::run_programs(programs, session.folder("check").path(), checkup);
    run.report = write_report(session, checkup, how);
  }
  run.document = findings_document(checkup);
  run.verdict = checkup.verdict, run.numbers = numbers_line(checkup), run.coverage = coverage_line(checkup);
  run.findings = std::move(checkup.results.findings), run.known = std::move(checkup.known);
  run.passed = std::move(checkup.results.passed), run.skipped = std::move(checkup.results.skipped);
  run.times = std::move(checkup.times);
  run.blocked = checkup.blocked, run.interrupted = checkup.interrupted;
  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  for (const auto& [what, took] : run.times) times.push_back({{"what", what}, {"seconds", took}});
  session.folder("check").add("times", times);
  if (!how.latency.is_null()) session.folder("check").add("latency", how.latency);
  return run;
}

}  // namespace netmend::evidence
