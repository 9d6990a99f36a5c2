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
  auto box = [&](const std::string& name, std::vector<double> values) {
    if (!outliers && values.size() >= 4) {
      const trials::Box whole = trials::box_of(name, values);
      const double reach = 1.5 * (whole.high - whole.low);
      std::erase_if(values, [&](double x) { return x < whole.low - reach || x > whole.high + reach; });
    }
    return trials::box_of(name, std::move(values));
  };
  std::vector<double> clean;
  for (const RunOutcome& run : result.clean)
    if (run.metric) clean.push_back(metric ? *run.metric : run.seconds);
  std::vector<trials::Box> list = {box("clean", clean)};
  for (const std::string& name : names) {
    std::vector<double> values;
    for (const InjectedBug& bug : result.bugs)
      if (bug.run.metric && belongs(bug, name)) values.push_back(metric ? *bug.run.metric : bug.run.seconds);
    list.push_back(box(name, std::move(values)));
  }
  return list;
}

std::string clean_words(const CleanSummary& clean) {
  if (clean.deterministic)
    return fmt::format("{} clean runs, all with the metric {:.6g}; {:.2f} s each", clean.runs, clean.mean,
                       clean.seconds);
  return fmt::format(
      "{} clean runs: metric {:.6g} ± {:.2g} ({:.6g} to {:.6g}), not deterministic; to tell a change by one per cent, "
      "{} "
      "runs of each version would be needed; {:.2f} s each",
      clean.runs, clean.mean, clean.deviation, clean.low, clean.high, clean.runs_needed, clean.seconds);
}

Markdown survivors_text(const InjectResult& result, const Analysis& analysis) {
  constexpr size_t kShown = 20;
  Markdown text = Markdown::of("## Survivors\n\n{} of {} bugs change neither metric nor time noticeably.\n\n",
                               analysis.survivors.size(), result.bugs.size());
  for (size_t i = 0; i < std::min(kShown, analysis.survivors.size()); ++i) {
    const Survivor& one = analysis.survivors[i];
    const InjectedBug& bug = result.bugs[one.bug];
    text += Markdown::of("### {}. {}\n\n{}, metric {:.6g}. What would catch it: {}.\n\n{}\n", i + 1, bug.id,
                         join(bug.phases, ", "), *bug.run.metric, one.check, MarkdownPlace::block("diff", bug.diff));
  }
  return text;
}

Markdown operators_text(const Analysis& analysis) {
  Markdown text = Markdown::of(
      "## Operators against clean runs\n\n| operator | normal | metric p | d | time p | d "
      "|\n|---|---|---|---|---|---|\n");
  for (const OperatorTest& one : analysis.tests)
    text += Markdown::of("| {} | {} | {:.3g} | {:.2f} | {:.3g} | {:.2f} |\n", one.op, one.normal, one.metric_p,
                         one.metric.effect, one.time_p, one.time.effect);
  return text +
         Markdown::of(
             "\np by Welch's test and Holm's correction. Over operators: metric F = {:.3g}, p = {:.3g}; time F = "
             "{:.3g}, p = {:.3g} (one-way ANOVA).\n\n",
             analysis.anova_metric.f, analysis.anova_metric.p, analysis.anova_time.f, analysis.anova_time.p);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> figures(const InjectResult& result, const Analysis& analysis) {
  std::vector<std::string> operators, phases;
  for (const OutcomeCounts& one : analysis.operators) operators.push_back(one.name);
  for (const OutcomeCounts& one : analysis.phases) phases.push_back(one.name);
  struct Plot {
    const char *name, *title;
    bool metric;
    std::vector<std::string> names;
    std::function<bool(const InjectedBug&, const std::string&)> belongs;
  };
  auto any = [](const InjectedBug&, const std::string&) { return true; };
  auto of_operator = [](const InjectedBug& bug, const std::string& name) { return bug.op == name; };
  auto in_phase = [](const InjectedBug& bug, const std::string& name) {
    return std::find(bug.phases.begin(), bug.phases.end(), name) != bug.phases.end();
  };
  const std::vector<Plot> plots = {{"figure1-metric", "metric", true, {"buggy"}, any},
                                   {"figure2-time", "seconds", false, {"buggy"}, any},
                                   {"figure3-metric-by-operator", "metric by operator", true, operators, of_operator},
                                   {"figure4-time-by-operator", "seconds by operator", false, operators, of_operator},
                                   {"figure5-metric-by-phase", "metric by phase", true, phases, in_phase},
                                   {"figure6-time-by-phase", "seconds by phase", false, phases, in_phase}};
  std::vector<std::pair<std::string, std::string>> files;
  for (const Plot& plot : plots)
    for (bool outliers : {false, true})
      files.emplace_back(fmt::format("{}{}.svg", plot.name, outliers ? "-outliers" : ""),
                         trials::boxes_svg(fmt::format("{}, {} outliers", plot.title, outliers ? "with" : "without"),
                                           boxes(result, plot.metric, outliers, plot.names, plot.belongs),
                                           plot.metric ? analysis.clean.mean : analysis.clean.seconds));
  return files;
}

std::string report_text(const InjectResult& result, const Analysis& analysis) {
  Markdown text = Markdown::of("# Injected bugs: {}\n\n{} bugs of {} that executed lines allow; {}.\n\n",
                               result.program, result.bugs.size(), result.possible, clean_words(analysis.clean));
  text += Markdown::of("## Outcomes (Table IV)\n\n{}", counts_table("", {analysis.all}));
  text += Markdown::of("## By operator (Table V)\n\n{}", counts_table("operator", analysis.operators));
  std::vector<OutcomeCounts> phases = analysis.phases;
  for (OutcomeCounts& one : phases)
    if (auto hit = result.phase_lines.find(one.name); hit != result.phase_lines.end())
      one.name += fmt::format(" ({} lines)", hit->second);
  text += Markdown::of("## By phase (Table VI)\n\n{}", counts_table("phase", phases));
  text += Markdown::of(
      "A bug counts in each phase in which its line runs.\n\n## Causes of crashes\n\n| cause | bugs |\n|---|---|\n");
  for (const auto& [cause, count] : analysis.causes)
    text += Markdown::of("| {} | {} |\n", cause.empty() ? "not recognised" : cause, count);
  text += Markdown::of("\n{}## The findings of the paper\n\n| | finding | here | by |\n|---|---|---|---|\n",
                       operators_text(analysis));
  for (const RestatedFinding& one : analysis.findings)
    text += Markdown::of("| {} | {} | **{}** | {} |\n", one.number, one.claim, one.verdict, one.test);
  return (text + Markdown::of("\n{}", survivors_text(result, analysis))).text();
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
                   {"runs_needed", clean.runs_needed}};
  json["possible"] = result.possible, json["files"] = result.files, json["executed_lines"] = result.lines;
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
  json["findings_of_the_paper"] = Json::array();
  for (const RestatedFinding& one : analysis.findings)
    json["findings_of_the_paper"].push_back(
        {{"number", one.number}, {"claim", one.claim}, {"verdict", one.verdict}, {"test", one.test}});
  json["survivors"] = Json::array();
  for (const Survivor& one : analysis.survivors)
    json["survivors"].push_back({{"id", result.bugs[one.bug].id}, {"danger", one.danger}, {"check", one.check}});
  json["mutants"] = Json::array();
  for (size_t i = 0; i < result.bugs.size(); ++i)
    json["mutants"].push_back(bug_json(result.bugs[i], against(analysis, i)));
  json["skipped"] = result.skipped;
  json["seconds"] = result.seconds, json["generating_seconds"] = result.generating, json["found_trials"] = result.found;
  return json;
}

void write_bugs(const std::string& path, const InjectResult& result, const Analysis& analysis) {
  write_csv(path, "id,operator,file,line,phases,outcome,metric,seconds,exception,cause,noticed", [&](CsvWriter& out) {
    for (size_t i = 0; i < result.bugs.size(); ++i) {
      const InjectedBug& bug = result.bugs[i];
      const Against* compared = against(analysis, i);
      out.row(bug.id, bug.op, bug.name, bug.line, join(bug.phases, "+"), bug.run.outcome,
              Digits{bug.run.metric.value_or(NAN), 9, true}, Digits{bug.run.seconds, 4}, bug.run.exception,
              bug.run.cause, compared ? (compared->noticed() ? "1" : "0") : "");
    }
  });
}

}  // namespace netmend::programs
