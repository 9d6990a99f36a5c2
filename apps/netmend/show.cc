#include "netmend/show.h"

#include <algorithm>
#include <cmath>

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

void print_classes(const PredictionResult& result) {
  constexpr size_t most = 20;
  std::vector<const ClassResult*> order;
  for (const ClassResult& about : result.per_class) order.push_back(&about);
  bool cut = order.size() > most;
  if (cut) std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->recall < b->recall; });
  size_t width = 5;
  for (size_t i = 0; i < std::min(order.size(), most); ++i) width = std::max(width, order[i]->name.size());
  fmt::print("\n  {:<{}}  inputs  correct  recall            precision\n", cut ? "worst" : "class", width);
  for (size_t i = 0; i < std::min(order.size(), most); ++i)
    fmt::print(
        "  {:<{}}  {:>6}  {:>6}   {:>6.2f} % {:<12} {:>6.2f} %\n", order[i]->name, width, order[i]->samples,
        order[i]->correct, 100 * order[i]->recall,
        order[i]->samples ? fmt::format("({:.1f}–{:.1f})", 100 * order[i]->range.low, 100 * order[i]->range.high) : "",
        100 * order[i]->precision);
  if (cut) fmt::print("  … and {} more classes (--json has all)\n", order.size() - most);
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
  fmt::print("\n  most confused pairs\n");
  for (size_t i = 0; i < std::min<size_t>(pairs.size(), 5); ++i)
    fmt::print("  {:>6}  {} predicted as {}\n", pairs[i].count, settings.classes[pairs[i].label],
               settings.classes[pairs[i].predicted]);
}

}  // namespace

void print_result(const PredictionSettings& settings, const PredictionResult& result, double seconds) {
  std::string speed =
      seconds > 0 ? fmt::format("   {:.2f} s, {}/s", seconds, with_commas(int64_t(double(result.samples) / seconds)))
                  : "";
  if (settings.task == Task::kNone)
    fmt::print("  {} inputs without labels{}\n", with_commas(result.samples), speed);
  else if (result.metrics.empty())
    fmt::print("  no inputs\n");
  else
    fmt::print("  {} inputs   {} {}{}{}\n", with_commas(result.samples), result.metrics[0].name,
               figure_text(result.metrics[0].name, result.metrics[0].estimate),
               result.metrics[0].name == "accuracy" ? fmt::format("   {} correct", with_commas(result.correct)) : "",
               speed);
  std::vector<std::string> others;
  for (size_t i = 1; i < result.metrics.size(); ++i)
    others.push_back(result.metrics[i].name + " " + figure_text(result.metrics[i].name, result.metrics[i].estimate));
  if (!others.empty()) fmt::print("  {}\n", join(others, "   "));
  if (result.not_finite > 0)
    fmt::print("  {} predictions are NaN or Inf: counted as wrong, left out of the loss\n",
               with_commas(result.not_finite));
  if (!result.per_class.empty()) print_classes(result), print_confusions(settings, result);
}

void print_groups(const PredictionSettings& settings, const std::vector<observers::GroupResult>& groups) {
  if (groups.empty()) return;
  const bool two = settings.by_class() && settings.classes.size() == 2, number = settings.task == Task::kNumber;
  size_t width = 5, shown = 0;
  for (const auto& group : groups) width = std::max(width, group.column.size() + group.value.size() + 1);
  width = std::min<size_t>(width, 40);
  fmt::print(
      "\n  {:<{}}  inputs   {}{}\n", "group", width, number ? "error" : "right",
      two ? fmt::format("                 predicted {0}   recall of {0}", settings.classes[size_t(settings.positive)])
          : "");
  for (const auto& group : groups) {
    if (++shown > 30) break;
    std::string name = fmt::format("{}={}", group.column, group.value.empty() ? "(missing)" : group.value);
    std::string more;
    if (two)
      more = fmt::format("   {:>5.1f} %        {:>5.1f} %", 100 * stats::rate(group.called, group.samples).value,
                         100 * stats::rate(group.found, group.positives).value);
    fmt::print("  {:<{}}  {:>6}   {}{}\n", printable(name), width, group.samples,
               figure_text(number ? "mae" : "accuracy", group.figure(settings)), more);
  }
  if (groups.size() > 30) fmt::print("  … and {} more groups (--json has all)\n", groups.size() - 30);
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
  fmt::print("\n  set-ups tried on {} inputs\n", preflight.inputs);
  size_t shown = 0;
  for (const preflight::Tried& tried : preflight.tried) {
    if (!tried.runs || ++shown > most) continue;
    std::string figure = metric == "mae" || metric == "rmse" ? fmt::format("{:>8.4g}", tried.accuracy.value)
                                                             : fmt::format("{:>6.1f} %", 100 * tried.accuracy.value);
    fmt::print("  {}   {}\n", figure, tried.words);
  }
  if (shown > most) fmt::print("             … and {} more, none better\n", shown - most);
}

}  // namespace

void print_preflight(const preflight::Preflight& preflight, const std::string& metric) {
  std::string text;
  for (const preflight::Line& line : preflight.lines)
    text += fmt::format("   {} {}", line.text, line.holds ? "✓" : "✗");
  fmt::print("preflight{}\n", text);
  if (!preflight.blocker) return;
  const preflight::Blocker& blocker = *preflight.blocker;
  fmt::print("\n  blocker  {}\n           {} {}.\n", blocker.id(), blocker.title, blocker.evidence);
  if (preflight.tried.size() > 1) print_tried(preflight, metric);
  if (!blocker.line.empty())
    fmt::print("\n  Put this into netmend.toml, then try again:\n\n    {}\n",
               join(split(blocker.line, '\n'), "\n    "));
  fmt::print("\n  Nothing is said about the model before this is resolved; --anyway overrules.\n");
}

}  // namespace netmend::app
