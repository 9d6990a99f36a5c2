#include "netmend/show.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "observers/figures.h"

namespace netmend::app {
namespace {

using observers::ClassResult;
using observers::estimate_json;
using observers::figure_text;
using observers::PredictionResult;
using observers::PredictionSettings;
using observers::Task;

constexpr size_t kGroups = 30;  ///< that are shown

void print_classes(const PredictionResult& result) {
  constexpr size_t most = 20;
  std::vector<const ClassResult*> order;
  for (const ClassResult& about : result.per_class) order.push_back(&about);
  bool cut = order.size() > most;
  if (cut) std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->recall < b->recall; });
  Table table{{cut ? "worst classes" : "class", "inputs", "correct", "recall", "precision"}, "lrrrr"};
  for (size_t i = 0; i < std::min(order.size(), most); ++i) {
    const ClassResult& one = *order[i];
    table.rows.push_back({one.name, with_commas(one.samples), with_commas(one.correct),
                          one.samples ? fmt::format("{:.2f} % ({:.1f}–{:.1f})", 100 * one.recall, 100 * one.range.low,
                                                    100 * one.range.high)
                                      : "–",
                          fmt::format("{:.2f} %", 100 * one.precision)});
  }
  print("\n");
  print_table(table);
  if (cut) print("  … and {} more (--json has all)\n", order.size() - most);
}

void print_confusions(const PredictionSettings& settings, const PredictionResult& result) {
  struct Pair {
    int64_t count;
    size_t label, predicted;
  };
  std::vector<Pair> pairs;
  for (size_t label = 0; label < result.confusion.size(); ++label)
    for (size_t predicted = 0; predicted < result.confusion.size(); ++predicted)
      if (label != predicted && result.confusion[label][predicted] > 0)
        pairs.push_back({result.confusion[label][predicted], label, predicted});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.empty()) return;
  print("\n  most confused pairs\n");
  for (size_t i = 0; i < std::min<size_t>(pairs.size(), 5); ++i) {
    print("  {:>6}  ", with_commas(pairs[i].count));
    print_wrapped(
        fmt::format("{} predicted as {}", settings.classes[pairs[i].label], settings.classes[pairs[i].predicted]), 10,
        10);
  }
}

}  // namespace

void print_result(const PredictionSettings& settings, const PredictionResult& result, double seconds) {
  std::string speed =
      seconds > 0 ? fmt::format("   {:.2f} s, {}/s", seconds, with_commas(int64_t(double(result.samples) / seconds)))
                  : "";
  if (settings.task == Task::kNone)
    print("  {} without labels{}\n", counted(result.samples, "input"), speed);
  else if (result.metrics.empty())
    print("  no inputs\n");
  else
    print_wrapped(
        fmt::format(
            "{}   {} {}{}{}", counted(result.samples, "input"), result.metrics[0].name,
            figure_text(result.metrics[0].name, result.metrics[0].estimate),
            result.metrics[0].name == "accuracy" ? fmt::format("   {} correct", with_commas(result.correct)) : "",
            speed),
        2);
  std::vector<std::string> others;
  for (size_t i = 1; i < result.metrics.size(); ++i)
    others.push_back(result.metrics[i].name + " " + figure_text(result.metrics[i].name, result.metrics[i].estimate));
  if (!others.empty()) print_wrapped(join(others, "   "), 2);
  if (result.not_finite > 0)
    print("  {} {} NaN or Inf: counted as wrong, left out of the loss\n", counted(result.not_finite, "prediction"),
          result.not_finite == 1 ? "is" : "are");
  if (!result.per_class.empty()) print_classes(result), print_confusions(settings, result);
}

void print_groups(const PredictionSettings& settings, const std::vector<observers::GroupResult>& groups) {
  if (groups.empty()) return;
  const bool two = settings.by_class() && settings.classes.size() == 2, number = settings.task == Task::kNumber;
  Table table{{"group", "inputs", number ? "mean absolute error" : "accuracy"}, "lrr"};
  if (two) {
    const std::string& positive = settings.classes[size_t(settings.positive)];
    table.head.insert(table.head.end(), {"predicted " + positive, "recall of " + positive}), table.align += "rr";
  }
  for (const auto& group : groups) {
    if (table.rows.size() == kGroups) break;
    table.rows.push_back({fmt::format("{}={}", group.column, group.value.empty() ? "(missing)" : group.value),
                          with_commas(group.samples),
                          figure_text(number ? "mae" : "accuracy", group.figure(settings))});
    if (two)
      for (double share :
           {stats::rate(group.called, group.samples).value, stats::rate(group.found, group.positives).value})
        table.rows.back().push_back(std::isnan(share) ? "–" : fmt::format("{:.1f} %", 100 * share));
  }
  print("\n");
  print_table(table);
  if (groups.size() > kGroups) print("  … and {} more (--json has all)\n", groups.size() - kGroups);
}

Json groups_json(const PredictionSettings& settings, const std::vector<observers::GroupResult>& groups) {
  Json list = Json::array();
  const bool two = settings.by_class() && settings.classes.size() == 2;
  for (const auto& group : groups) {
    Json json = {{"column", group.column},
                 {"value", group.value},
                 {"samples", group.samples},
                 {settings.task == Task::kNumber ? "mae" : "accuracy", estimate_json(group.figure(settings))}};
    if (two) {
      json["selection_rate"] = estimate_json(stats::rate(group.called, group.samples));
      json["true_positive_rate"] = estimate_json(stats::rate(group.found, group.positives));
      json["false_positive_rate"] =
          estimate_json(stats::rate(group.called - group.found, group.samples - group.positives));
    }
    list.push_back(std::move(json));
  }
  return list;
}

namespace {

void print_tried(const preflight::Preflight& preflight, const std::string& metric) {
  constexpr size_t most = 8;
  print("\n  set-ups tried on {}\n", counted(preflight.inputs, "input"));
  size_t shown = 0;
  for (const preflight::Tried& tried : preflight.tried) {
    if (!tried.runs || ++shown > most) continue;
    std::string figure = metric == "mae" || metric == "rmse" ? fmt::format("{:>8.4g}", tried.accuracy.value)
                                                             : fmt::format("{:>6.1f} %", 100 * tried.accuracy.value);
    print("  {}   ", figure);
    print_wrapped(tried.words, 13, 13);
  }
  if (shown > most) print("             … and {} more, none more accurate on these\n", shown - most);
}

}  // namespace

void print_preflight(const preflight::Preflight& preflight, const std::string& metric, OnBlocker then) {
  std::vector<std::string> parts;
  bool doubt = false;
  for (const preflight::Line& line : preflight.lines) {
    parts.push_back(fmt::format("{} {}", line.text, line.holds ? "✓" : "✗"));
    doubt = doubt || !line.holds;
  }
  print("preflight   ");
  print_parts(parts, 12, 12);
  if (!preflight.blocker) {
    if (doubt)
      print_wrapped(
          "✗ is a warning here, not a blocker: the command continues, and the exit status does not depend on it", 12);
    return;
  }
  const preflight::Blocker& blocker = *preflight.blocker;
  print("\n  blocker  {}\n", printable(blocker.id()));
  print_wrapped(fmt::format("{} {}.", blocker.title, blocker.evidence), 11);
  if (preflight.tried.size() > 1) print_tried(preflight, metric);
  if (!blocker.line.empty())
    print("\n  Put this into netmend.toml, then try again:\n\n    {}\n", join(split(blocker.line, '\n'), "\n    "));
  static const std::map<OnBlocker, const char*> ends = {
      {OnBlocker::kStop, "The model is not judged until this is resolved: exit 1. --anyway overrides this."},
      {OnBlocker::kDataOnly,
       "Only the data is checked: the model is not judged until this is resolved. --anyway overrides this."},
      {OnBlocker::kGoOn,
       "The command continues anyway: its results may say nothing about the model as it was trained."},
      {OnBlocker::kAsk, "The file is written, but the model is not judged until this is resolved: exit 1."}};
  print("\n");
  print_wrapped(ends.at(then), 2);
}

}  // namespace netmend::app
