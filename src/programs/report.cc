#include "programs/report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "trials/boxes.h"

namespace netmend::programs {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

const Against* against(const Analysis& analysis, size_t bug) {
  for (const Against& one : analysis.normal)
    if (one.bug == bug) return &one;
  return nullptr;
}

Json counts_json(const OutcomeCounts& one, const char* name) {
  Json row = {{name, one.name}, {"total", one.total}};
  for (const char* outcome : kOutcomes) row[outcome] = one.of(outcome);
  return row;
}

Json bug_json(const InjectedBug& bug, const Against* compared) {
  Json row = {{"id", bug.id},     {"operator", bug.op},         {"file", bug.name},
              {"line", bug.line}, {"phase", bug.phases},        {"outcome", bug.run.outcome},
              {"diff", bug.diff}, {"seconds", bug.run.seconds}, {"peak_bytes", bug.run.peak}};
  row["processor_seconds"] = number(bug.run.processor);
  if (bug.doctor) row["doctor"] = bug.doctor->kinds;
  row["metric"] = bug.run.metric ? Json(*bug.run.metric) : Json(nullptr);
  if (bug.run.outcome == "crash" || bug.run.outcome == "killed")
    row["exception"] = bug.run.exception, row["message"] = bug.run.message,
    row["cause"] = bug.run.cause.empty() ? Json(nullptr) : Json(bug.run.cause);
  if (compared) {
    row["metric_p"] = number(compared->metric_p), row["metric_effect"] = number(compared->metric.effect);
    row["time_p"] = number(compared->time_p), row["time_effect"] = number(compared->time.effect);
    row["noticed"] = compared->noticed();
  }
  return row;
}

Json tests_json(const std::vector<GroupTest>& tests, const char* name) {
  Json list = Json::array();
  for (const GroupTest& one : tests)
    list.push_back({{name, one.name},
                    {"normal", one.normal},
                    {"metric_p", number(one.metric_p)},
                    {"metric_effect", number(one.metric.effect)},
                    {"time_p", number(one.time_p)},
                    {"time_effect", number(one.time.effect)}});
  return list;
}

Json pairs_json(const std::vector<PairTest>& pairs) {
  Json list = Json::array();
  for (const PairTest& one : pairs)
    list.push_back({{"a", one.a},
                    {"b", one.b},
                    {"metric_p", number(one.metric_p)},
                    {"metric_effect", number(one.metric.effect)},
                    {"time_p", number(one.time_p)},
                    {"time_effect", number(one.time.effect)}});
  return list;
}

Markdown share_cell(const OutcomeCounts& one, const std::string& outcome) {
  if (one.total == 0) return Markdown::of("0");
  return Markdown::of("{} ({:.1f} %)", one.of(outcome), 100 * one.share(outcome).value);
}

Markdown counts_table(const std::string& head, const std::vector<OutcomeCounts>& rows) {
  Markdown text = Markdown::of("| {} |", head);
  for (const char* outcome : kOutcomes) text += Markdown::of(" {} |", outcome);
  text += Markdown::of(" total |\n|---|");
  for (size_t i = 0; i <= std::size(kOutcomes); ++i) text += Markdown::of("---|");
  text += Markdown::of("\n");
  for (const OutcomeCounts& one : rows) {
    text += Markdown::of("| {} |", one.name);
    for (const char* outcome : kOutcomes) text += Markdown::of(" {} |", share_cell(one, outcome));
    text += Markdown::of(" {} |\n", one.total);
  }
  return text + Markdown::of("\n");
}

/// The values of normal bugs by a name, with the clean runs first.
std::vector<trials::Box> boxes(const InjectResult& result, bool metric, bool outliers,
                               const std::vector<std::string>& names,
                               const std::function<bool(const InjectedBug&, const std::string&)>& belongs) {
  const bool processor = compares_processor_time(result);
  auto value = [&](const RunOutcome& run) { return metric ? *run.metric : time_of(run, processor); };
  std::vector<double> clean;
  for (const RunOutcome& run : result.clean)
    if (run.metric) clean.push_back(value(run));
  std::vector<trials::Box> list = {trials::fenced_box("clean", clean, outliers)};
  for (const std::string& name : names) {
    std::vector<double> values;
    for (const InjectedBug& bug : result.bugs)
      if (bug.run.metric && belongs(bug, name)) values.push_back(value(bug.run));
    list.push_back(trials::fenced_box(name, std::move(values), outliers));
  }
  return list;
}

std::string clean_words(const CleanSummary& clean, bool seeded) {
  if (clean.deterministic)
    return fmt::format("{} clean runs, all with the metric {:.6g}; {:.2f} s each", clean.runs, clean.mean,
                       clean.seconds);
  return fmt::format(
      "{} clean runs{}: metric {:.6g} ± {:.2g} ({:.6g} to {:.6g}){}; to detect a change of one per cent, {} runs of "
      "each "
      "version would be needed; {:.2f} s each",
      clean.runs, seeded ? " with a seed each" : "", clean.mean, clean.deviation, clean.low, clean.high,
      seeded ? "" : ", not deterministic", clean.runs_needed, clean.seconds);
}

Markdown survivors_text(const InjectResult& result, const Analysis& analysis) {
  constexpr size_t kShown = 20;
  Markdown text = Markdown::of("## Survivors\n\n{} of {} bugs change neither metric nor time noticeably. ",
                               analysis.survivors.size(), result.bugs.size());
  if (result.repeats)
    text += Markdown::of("Bugs that leave the metric the same to the last digit: {}.", analysis.unchanged);
  text += Markdown::of("\n\n");
  const DoctorScore& doctor = analysis.doctor;
  if (doctor.asked > 0) {
    text += Markdown::of(
        "`netmend watch` and `lint` looked at {} of them and distinguish {} from the clean program by a finding above "
        "a note{}.{}\n\n",
        doctor.asked, doctor.caught,
        doctor.changed == 0 ? std::string()
                            : fmt::format("; among those whose metric differs from that of the clean run, {} of {}",
                                          doctor.changed_caught, doctor.changed),
        result.clean_doctor.kinds.empty()
            ? std::string()
            : " About the clean program it says " + join(result.clean_doctor.kinds, ", ") + ".");
    for (const auto& [kind, count] : doctor.kinds) text += Markdown::of("- {}: {}\n", kind, count);
    if (!doctor.kinds.empty()) text += Markdown::of("\n");
  }
  if (analysis.survivors.size() > kShown)
    text += Markdown::of(
        "The {} most dangerous follow. The JSON file beside this one has all {} under `survivors`, in this order, and "
        "their diffs under `mutants`; in [bugs.csv](bugs.csv) they are the rows whose `noticed` is 0.\n\n",
        kShown, analysis.survivors.size());
  for (size_t i = 0; i < std::min(kShown, analysis.survivors.size()); ++i) {
    const Survivor& one = analysis.survivors[i];
    const InjectedBug& bug = result.bugs[one.bug];
    text += Markdown::of("### {}. {}\n\n{}, metric {:.6g}{}. What would catch it: {}.\n\n{}\n", i + 1, bug.id,
                         join(bug.phases, ", "), *bug.run.metric, one.unchanged ? " as without it" : "", one.check,
                         MarkdownPlace::block("diff", bug.diff));
  }
  return text;
}

Markdown groups_text(const std::string& title, const std::string& head, const std::vector<GroupTest>& tests,
                     const std::vector<PairTest>& pairs, const stats::Anova& metric, const stats::Anova& time) {
  Markdown text =
      Markdown::of("## {}\n\n| {} | normal | metric p | d | time p | d |\n|---|---|---|---|---|---|\n", title, head);
  for (const GroupTest& one : tests)
    text += Markdown::of("| {} | {} | {:.3g} | {:.2f} | {:.3g} | {:.2f} |\n", one.name, one.normal, one.metric_p,
                         one.metric.effect, one.time_p, one.time.effect);
  text += Markdown::of(
      "\nAgainst clean runs; p by Welch's test and Holm's correction. All together: metric F = {:.3g}, p = {:.3g}; "
      "time "
      "F = {:.3g}, p = {:.3g} (one-way ANOVA).\n\n",
      metric.f, metric.p, time.f, time.p);
  int64_t differ = 0, differ_in_time = 0;
  Markdown rows;
  for (const PairTest& one : pairs) {
    const bool own = one.metric_p < 0.05, own_time = one.time_p < 0.05;
    differ += own, differ_in_time += own_time;
    if (own || own_time)
      rows += Markdown::of("| {} and {} | {:.3g} | {:.2f} | {:.3g} | {:.2f} |\n", one.a, one.b, one.metric_p,
                           one.metric.effect, one.time_p, one.time.effect);
  }
  text += Markdown::of("Of {} pairs {} differ in the metric and {} in time.\n\n", pairs.size(), differ, differ_in_time);
  if (differ + differ_in_time > 0)
    text += Markdown::of("| pair | metric p | d | time p | d |\n|---|---|---|---|---|\n{}\n", rows);
  return text;
}

int64_t in_several_phases(const InjectResult& result) {
  return std::count_if(result.bugs.begin(), result.bugs.end(),
                       [](const InjectedBug& bug) { return bug.phases.size() > 1; });
}
int64_t in_all_phases(const Analysis& analysis) {
  int64_t total = 0;
  for (const OutcomeCounts& one : analysis.phases) total += one.total;
  return total;
}

/// One of the paper's figures: boxes of the metric or the time, drawn without outliers and with them.
struct Figure {
  enum By { kAll, kOperator, kPhase };
  const char *name, *title;
  bool metric;
  By by;
  std::string file(bool outliers) const { return fmt::format("{}{}.svg", name, outliers ? "-outliers" : ""); }
};
constexpr Figure kFigures[] = {{"figure1-metric", "metric", true, Figure::kAll},
                               {"figure2-time", "seconds", false, Figure::kAll},
                               {"figure3-metric-by-operator", "metric by operator", true, Figure::kOperator},
                               {"figure4-time-by-operator", "seconds by operator", false, Figure::kOperator},
                               {"figure5-metric-by-phase", "metric by phase", true, Figure::kPhase},
                               {"figure6-time-by-phase", "seconds by phase", false, Figure::kPhase}};

Markdown figures_text(const InjectResult& result) {
  Markdown text = Markdown::of(
      "## Figures\n\nBoxes from the lower to the upper quartile with the median, of bugs that end normally; the line "
      "across is the mean of the clean runs. Seconds are {}. Each figure stands here without outliers and behind its "
      "link with them.\n\n",
      compares_processor_time(result) ? "of the processor" : "by the clock");
  int number = 0;
  for (const Figure& one : kFigures)
    text += Markdown::of("Figure {}: {} ([with outliers]({}))\n\n![Figure {}: {}]({})\n\n", ++number, one.title,
                         one.file(true), number, one.title, one.file(false));
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> figures(const InjectResult& result, const Analysis& analysis) {
  std::vector<std::string> operators, phases;
  for (const OutcomeCounts& one : analysis.operators) operators.push_back(one.name);
  for (const OutcomeCounts& one : analysis.phases) phases.push_back(one.name);
  auto of_operator = [](const InjectedBug& bug, const std::string& name) { return bug.op == name; };
  auto in_phase = [](const InjectedBug& bug, const std::string& name) {
    return std::find(bug.phases.begin(), bug.phases.end(), name) != bug.phases.end();
  };
  std::vector<std::pair<std::string, std::string>> files;
  for (const Figure& figure : kFigures)
    for (bool outliers : {false, true}) {
      std::vector<trials::Box> list;
      if (figure.by == Figure::kOperator)
        list = boxes(result, figure.metric, outliers, operators, of_operator);
      else if (figure.by == Figure::kPhase)
        list = boxes(result, figure.metric, outliers, phases, in_phase);
      else
        list = boxes(result, figure.metric, outliers, {"buggy"}, [](const auto&, const auto&) { return true; });
      files.emplace_back(figure.file(outliers),
                         trials::boxes_svg(fmt::format("{}, {} outliers", figure.title, outliers ? "with" : "without"),
                                           list, figure.metric ? analysis.clean.mean : analysis.clean.time));
    }
  return files;
}

std::string children_words(const InjectResult& result) {
  std::vector<std::string> parts;
  if (result.children == 1) parts.push_back("1 child process of the program: lines that it executes count too");
  if (result.children > 1)
    parts.push_back(fmt::format("{} child processes of the program: lines that they execute count too",
                                with_commas(result.children)));
  if (result.untraced > 0)
    parts.push_back(fmt::format(
        "{} Python program{} that it starts {} not seen, so lines that only {} are left out: {} without "
        "the environment of the program (python -I, -E or -S, or env=)",
        with_commas(result.untraced), result.untraced == 1 ? "" : "s", result.untraced == 1 ? "was" : "were",
        result.untraced == 1 ? "it executes" : "they execute", result.untraced == 1 ? "it starts" : "they start"));
  return join(parts, "; ");
}

std::string report_text(const InjectResult& result, const Analysis& analysis) {
  Markdown text =
      Markdown::of("# Injected bugs: {}\n\n{} bugs of {} that are possible in the executed lines; {}.\n\n",
                   result.program, result.bugs.size(), result.possible, clean_words(analysis.clean, result.seeded));
  if (const std::string children = children_words(result); !children.empty()) text += Markdown::of("{}.\n\n", children);
  text += Markdown::of("## Outcomes (Table IV)\n\n{}", counts_table("", {analysis.all}));
  text += Markdown::of("## By operator (Table V)\n\n{}", counts_table("operator", analysis.operators));
  std::vector<OutcomeCounts> phases = analysis.phases;
  for (OutcomeCounts& one : phases)
    if (auto hit = result.phase_lines.find(one.name); hit != result.phase_lines.end())
      one.name += fmt::format(" ({} lines)", hit->second);
  text += Markdown::of("## By phase (Table VI)\n\n{}", counts_table("phase", phases));
  text += Markdown::of(
      "A bug counts in each phase in which its line runs: {} of {} run in more than one, and the totals of the phases "
      "add up to {}. The tests and figures by phase count them so too.\n\n## Causes of crashes\n\n| cause | bugs "
      "|\n|---|---|\n",
      in_several_phases(result), result.bugs.size(), in_all_phases(analysis));
  for (const auto& [cause, count] : analysis.causes)
    text += Markdown::of("| {} | {} |\n", cause.empty() ? "not recognised" : cause, count);
  text += Markdown::of(
      "\n{}{}## The findings of the paper\n\n| | finding | here | by |\n|---|---|---|---|\n",
      groups_text("Operators", "operator", analysis.tests, analysis.pairs, analysis.anova_metric, analysis.anova_time),
      groups_text("Phases", "phase", analysis.phase_tests, analysis.phase_pairs, analysis.phases_metric,
                  analysis.phases_time));
  for (const RestatedFinding& one : analysis.findings)
    text += Markdown::of("| {} | {} | **{}** | {} |\n", one.number, one.claim, one.verdict, one.test);
  return (text + Markdown::of("\n{}{}", figures_text(result), survivors_text(result, analysis))).text();
}

Json to_json(const InjectResult& result, const Analysis& analysis) {
  const CleanSummary& clean = analysis.clean;
  Json json = {{"program", result.program}, {"python", result.python}, {"python_version", result.version}};
  json["clean"] = {{"runs", clean.runs},
                   {"mean", number(clean.mean)},
                   {"deviation", number(clean.deviation)},
                   {"low", number(clean.low)},
                   {"high", number(clean.high)},
                   {"seconds", number(clean.seconds)},
                   {"deterministic", clean.deterministic},
                   {"runs_needed", clean.runs_needed},
                   {"seeded", result.seeded},
                   {"repeats", result.repeats},
                   {"time", number(clean.time)},
                   {"time_deviation", number(clean.time_deviation)}};
  json["time_of"] = compares_processor_time(result) ? "processor" : "clock";
  json["possible"] = result.possible, json["files"] = result.files, json["executed_lines"] = result.lines;
  json["child_processes"] = result.children, json["untraced_processes"] = result.untraced;
  json["phases_from"] = result.marked ? "marks" : "calls";
  json["limit_seconds"] = result.limit;
  json["outcomes"] = counts_json(analysis.all, "of");
  json["operators"] = Json::array(), json["phases"] = Json::array();
  for (const OutcomeCounts& one : analysis.operators) json["operators"].push_back(counts_json(one, "operator"));
  for (const OutcomeCounts& one : analysis.phases) json["phases"].push_back(counts_json(one, "phase"));
  json["causes"] = Json::object();
  for (const auto& [cause, count] : analysis.causes) json["causes"][cause.empty() ? "not recognised" : cause] = count;
  json["anova"] = {{"metric_f", number(analysis.anova_metric.f)},
                   {"metric_p", number(analysis.anova_metric.p)},
                   {"time_f", number(analysis.anova_time.f)},
                   {"time_p", number(analysis.anova_time.p)}};
  json["anova_phases"] = {{"metric_f", number(analysis.phases_metric.f)},
                          {"metric_p", number(analysis.phases_metric.p)},
                          {"time_f", number(analysis.phases_time.f)},
                          {"time_p", number(analysis.phases_time.p)}};
  json["operator_tests"] = tests_json(analysis.tests, "operator"), json["operator_pairs"] = pairs_json(analysis.pairs);
  json["phase_tests"] = tests_json(analysis.phase_tests, "phase"),
  json["phase_pairs"] = pairs_json(analysis.phase_pairs);
  json["unchanged"] = analysis.unchanged;
  json["doctor"] = {{"asked", analysis.doctor.asked},
                    {"recorded", analysis.doctor.recorded},
                    {"caught", analysis.doctor.caught},
                    {"changed", analysis.doctor.changed},
                    {"changed_caught", analysis.doctor.changed_caught},
                    {"kinds", analysis.doctor.kinds},
                    {"clean", result.clean_doctor.kinds}};
  json["findings_of_the_paper"] = Json::array();
  for (const RestatedFinding& one : analysis.findings)
    json["findings_of_the_paper"].push_back(
        {{"number", one.number}, {"claim", one.claim}, {"verdict", one.verdict}, {"test", one.test}});
  json["survivors"] = Json::array();
  for (const Survivor& one : analysis.survivors)
    json["survivors"].push_back(
        {{"id", result.bugs[one.bug].id}, {"danger", one.danger}, {"unchanged", one.unchanged}, {"check", one.check}});
  json["mutants"] = Json::array();
  for (size_t i = 0; i < result.bugs.size(); ++i)
    json["mutants"].push_back(bug_json(result.bugs[i], against(analysis, i)));
  json["skipped"] = result.skipped;
  json["seconds"] = result.seconds, json["generating_seconds"] = result.generating, json["found_trials"] = result.found;
  return json;
}

void write_bugs(const std::string& path, const InjectResult& result, const Analysis& analysis) {
  write_csv(path, "id,operator,file,line,phases,outcome,metric,seconds,processor_seconds,exception,cause,noticed",
            [&](CsvWriter& out) {
              for (size_t i = 0; i < result.bugs.size(); ++i) {
                const InjectedBug& bug = result.bugs[i];
                const Against* compared = against(analysis, i);
                out.row(bug.id, bug.op, bug.name, bug.line, join(bug.phases, "+"), bug.run.outcome,
                        Digits{bug.run.metric.value_or(NAN), 9, true}, Digits{bug.run.seconds, 4},
                        Digits{bug.run.processor, 4, true}, bug.run.exception, bug.run.cause,
                        compared ? (compared->noticed() ? "1" : "0") : "");
              }
            });
}

}  // namespace netmend::programs
