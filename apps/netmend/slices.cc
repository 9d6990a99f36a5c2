// netmend slices: weak slices and groups of a model, and what other decision thresholds would do.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "netmend/show.h"
#include "observers/figures.h"
#include "slices/survey.h"
#include "slices/threshold.h"

namespace netmend::app {
namespace {

using netmend::slices::Group;
using netmend::slices::Rate;
using netmend::slices::Slice;
using netmend::slices::Survey;
using netmend::slices::ThresholdRates;
using netmend::slices::ThresholdStep;
using observers::estimate_json;

constexpr size_t kShown = 40;  ///< groups

Json rate_json(const Rate& rate) {
  return {{"here", estimate_json(rate.here)},
          {"rest", estimate_json(rate.rest)},
          {"apart", estimate_json(rate.apart)},
          {"count", rate.count},
          {"p", rate.p}};
}

Json groups_json(const std::vector<Group>& groups) {
  Json list = Json::array();
  for (const Group& group : groups) {
    Json row = {{"group", group.name()},
                {"inputs", group.inputs},
                {"too_small", group.too_small},
                {"failing", rate_json(group.failing)}};
    if (group.selected) {
      row["selected"] = rate_json(*group.selected);
      row["true_positive_rate"] = rate_json(*group.true_positive);
      row["false_positive_rate"] = rate_json(*group.false_positive);
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json slices_json(const Survey& survey) {
  Json list = Json::array();
  for (const Slice& slice : survey.weak.slices)
    list.push_back({{"slice", slice.name},
                    {"rule", slice.words},
                    {"inputs", slice.inputs},
                    {"judged_on", slice.judged_on},
                    {"here", estimate_json(survey.figure(slice.here))},
                    {"rest", estimate_json(survey.figure(slice.rest))},
                    {"behind", estimate_json(slice.behind)},
                    {"gain", slice.gain},
                    {"explained_by_confidence", slice.explained_by_confidence},
                    {"p", slice.p}});
  return list;
}

Json thresholds_json(const std::vector<ThresholdStep>& steps) {
  if (steps.empty()) return nullptr;
  Json list = Json::array();
  for (const ThresholdStep& step : steps) {
    Json row = {{"threshold", step.threshold}, {"groups", Json::array()}};
    for (const ThresholdRates& rates : step.groups)
      row["groups"].push_back({{"group", rates.group},
                               {"accuracy", estimate_json(rates.accuracy)},
                               {"selected", estimate_json(rates.selected)},
                               {"true_positive_rate", estimate_json(rates.true_positive_rate)},
                               {"false_positive_rate", estimate_json(rates.false_positive_rate)}});
    row["accuracy"] = observers::number_json(step.groups[0].accuracy.value);
    list.push_back(std::move(row));
  }
  return list;
}

std::string rate_text(const stats::Estimate& rate) {
  if (std::isnan(rate.value)) return "–";
  return fmt::format("{:.1f} % ({:.1f}–{:.1f})", 100 * rate.value, 100 * rate.low, 100 * rate.high);
}

std::string figure_cell(const Survey& survey, const stats::Estimate& failing) {
  const stats::Estimate figure = survey.figure(failing);
  return survey.errors ? fmt::format("{:.4g} ({:.4g}–{:.4g})", figure.value, figure.low, figure.high)
                       : rate_text(figure);
}

void print_group_table(const Survey& survey) {
  if (survey.groups.empty()) {
    print("\n");
    return print_wrapped("no groups: groups= in the data spec or data.groups in netmend.toml names columns to group by",
                         2);
  }
  size_t small = 0, printed = 0;
  const bool two = survey.groups[0].selected.has_value();
  Table table{{"group", "inputs", survey.metric()}, "lrr"};
  if (two)
    table.head.insert(table.head.end(), {"predicted positive", "true positive rate", "false positive rate"}),
        table.align += "rrr";
  for (const Group& group : survey.groups) {
    small += group.too_small;
    if (group.too_small || ++printed > kShown) continue;
    table.rows.push_back({group.name(), with_commas(group.inputs), figure_cell(survey, group.failing.here)});
    if (two)
      for (const Rate* rate : {&*group.selected, &*group.true_positive, &*group.false_positive})
        table.rows.back().push_back((rate->p < 0.05 ? "*" : "") + rate_text(rate->here));
  }
  print("\n");
  print_table(table);
  if (printed > kShown) print("  … and {} more groups (--json has all)\n", printed - kShown);
  if (two) print_wrapped("* differs from all other inputs (p < 0.05, Holm-corrected for the number of groups)", 2);
  if (small > 0) print("  {} too small to judge (--least)\n", counted(int64_t(small), "group"));
}

void print_slices(const Survey& survey) {
  if (survey.weak.slices.empty()) {
    print("\n");
    return print_wrapped(
        fmt::format("no weak slice: {} rules over {} columns and properties were compared; none that is weak on one "
                    "half of the inputs is also weak on the other",
                    with_commas(survey.weak.rules), survey.columns.size()),
        2);
  }
  Table table{
      {"weak slice", "inputs", survey.metric(), "elsewhere", survey.errors ? "behind" : "points behind", "gain"},
      "lrrrrr"};
  bool explained = false;
  for (const Slice& slice : survey.weak.slices) {
    const stats::Estimate rest = survey.figure(slice.rest);
    const bool mostly = !survey.errors && slice.explained_by_confidence > slices::kMostlyExplained;
    explained = explained || mostly;
    table.rows.push_back(
        {slice.words + (mostly ? " *" : ""), with_commas(slice.inputs), figure_cell(survey, slice.here)});
    auto add = [&](std::initializer_list<std::string> cells) {
      table.rows.back().insert(table.rows.back().end(), cells);
    };
    if (survey.errors)
      add({fmt::format("{:.4g}", rest.value), fmt::format("{:.4g}", slice.behind.value * survey.unit),
           fmt::format("{:.4g}", slice.gain * survey.unit)});
    else
      add({fmt::format("{:.1f} %", 100 * rest.value),
           fmt::format("{:.1f} ({:.1f}–{:.1f})", 100 * slice.behind.value, 100 * slice.behind.low,
                       100 * slice.behind.high),
           fmt::format("{:.2f} points", 100 * slice.gain)});
  }
  print("\n");
  print_table(table);
  print_wrapped(
      "slices were found on one half of the inputs, and the figures are for the other half; gain: what the whole "
      "metric would gain if the slice were as good as the rest",
      2);
  if (explained) print_wrapped("* most of the gap is expected from the confidence and the class of these inputs", 2);
}

void print_thresholds(const std::vector<ThresholdStep>& steps, const observers::PredictionSettings& task) {
  if (steps.empty()) return;
  print("\n");
  print_wrapped(
      fmt::format("decision threshold of {}: predicted positive / true positive rate / false positive rate, in %",
                  task.classes[size_t(task.positive)]),
      2);
  Table table{{"threshold", "accuracy"}, "lr"};
  for (const ThresholdRates& rates : steps[0].groups) table.head.push_back(rates.group), table.align += "r";
  table.head.push_back(""), table.align += "l";
  for (const ThresholdStep& step : steps) {
    table.rows.push_back(
        {fmt::format("{:.2f}", step.threshold), fmt::format("{:.2f} %", 100 * step.groups[0].accuracy.value)});
    for (const ThresholdRates& rates : step.groups)
      table.rows.back().push_back(fmt::format("{:.1f} / {:.1f} / {:.1f}", 100 * rates.selected.value,
                                              100 * rates.true_positive_rate.value,
                                              100 * rates.false_positive_rate.value));
    table.rows.back().push_back(step.current ? "current" : "");
  }
  print_table(table);
}

}  // namespace

int slices(const Common& common, const SlicesOptions& options) {
  session::Session session(request_of(common, options));
  const Examined examined = examine(common, options, session, "slices");
  if (examined.stop) return *examined.stop;
  const Survey survey = netmend::slices::survey(session, {options.groups, options.top, options.least});
  std::vector<ThresholdStep> steps;
  if (!options.threshold.empty()) steps = netmend::slices::sweep_thresholds(survey, session.task());
  const int status = survey.interrupted ? 130 : 0;
  const RunFolder& folder = session.folder("slices");
  netmend::slices::write_tables(folder, survey);
  const Shell next = session.command("locate");
  Json json = {{"model", session.model_name()},
               {"data", survey.data},
               {"inputs", survey.result.samples},
               {"of", survey.of},
               {"metric", survey.metric()},
               {"groups", groups_json(survey.groups)},
               {"slices", slices_json(survey)},
               {"rules_compared", survey.weak.rules},
               {"rules_tried", survey.weak.tested},
               {"thresholds", thresholds_json(steps)},
               {"preflight", evidence::preflight_json(examined.preflight)},
               {"next", Json::array({next})},
               {"seconds", survey.seconds},
               {"run", folder.path()}};
  mark_partial(json, status);
  write_file(folder.file("slices.json"), evidence::dump(json, 2));
  session.finish(survey.seconds, status);
  if (common.json) {
    print_json(json);
  } else {
    print("{}  on {}, {}\n", session.model_name(), survey.data, counted(survey.result.samples, "input"));
    if (!survey.result.metrics.empty())
      print("  {} {}\n", survey.result.metrics[0].name,
            observers::figure_text(survey.result.metrics[0].name, survey.result.metrics[0].estimate));
    print_group_table(survey);
    print_slices(survey);
    print_thresholds(steps, session.task());
    print("\n  next  {}\n  tables: {}/slices.csv, groups.csv\n", next.text(), folder.path());
  }
  if (survey.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {}", counted(survey.result.samples, "input")));
  return status;
}

}  // namespace netmend::app
