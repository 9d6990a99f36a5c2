// netmend compare: two models on the same inputs; regressions and fixes.
#include <fmt/format.h>

#include <algorithm>

#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "compare/regressions.h"
#include "evidence/json.h"
#include "findings/phrases.h"
#include "netmend/show.h"
#include "observers/figures.h"
#include "session/repair_record.h"

namespace netmend::app {
namespace {

using compare::NamedFlips;
using compare::Regressions;
using observers::estimate_json;
using observers::figure_text;
using observers::FlipCount;
using observers::Verdict;

constexpr size_t kShown = 20;  ///< rows of a table

Json count_json(const FlipCount& count) {
  return {{"samples", count.samples},
          {"before", count.right_before},
          {"after", count.right_after},
          {"fixed", count.fixed},
          {"broken", count.broken},
          {"net", count.net()},
          {"change", estimate_json(count.change())},
          {"p", stats::sign_test(count.fixed, count.broken)}};
}

Json compare_json(const Regressions& found, const std::string& metric) {
  const FlipCount& whole = found.whole;
  auto metrics = [](const std::vector<observers::Metric>& list) {
    Json all = Json::object();
    for (const observers::Metric& one : list) all[one.name] = estimate_json(one.estimate);
    return all;
  };
  Json json = {{"inputs", whole.samples},
               {"fixed", whole.fixed},
               {"broken", whole.broken},
               {"net", whole.net()},
               {"change", estimate_json(found.has_right_and_wrong ? whole.change() : found.error_change)},
               {"p", stats::sign_test(whole.fixed, whole.broken)},
               {"margin", found.margin},
               {"verdict", found.has_right_and_wrong ? observers::verdict_words(found.verdict) : ""},
               {"metric", metric},
               {"missing", found.missing},
               {"before", metrics(found.before)},
               {"after", metrics(found.after)},
               {"per_class", Json::array()},
               {"groups", Json::array()},
               {"fingerprint", found.fingerprint},
               {"seconds", found.seconds}};
  for (const NamedFlips& one : found.classes) {
    json["per_class"].push_back(count_json(one.count));
    json["per_class"].back()["class"] = one.name;
  }
  for (const NamedFlips& one : found.groups) {
    json["groups"].push_back(count_json(one.count));
    json["groups"].back()["column"] = one.column;
    json["groups"].back()["value"] = one.name;
  }
  return json;
}

std::string row_name(const NamedFlips& row) {
  return row.column.empty() ? row.name : row.column + "=" + (row.name.empty() ? "(missing)" : row.name);
}

void print_counts(const std::string& title, std::vector<NamedFlips> rows) {
  std::erase_if(rows, [](const NamedFlips& row) { return row.count.samples == 0; });
  if (rows.empty()) return;
  if (rows.size() > kShown && title == "class")
    std::stable_sort(rows.begin(), rows.end(),
                     [](const NamedFlips& a, const NamedFlips& b) { return a.count.net() < b.count.net(); });
  Table table{{title, "inputs", "before", "after", "fixes", "regressions", "change in points"}, "lrrrrrr"};
  bool clear = false;
  for (size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
    const FlipCount& count = rows[i].count;
    const stats::Estimate change = count.change();
    const bool clearly = change.high < 0 || change.low > 0;
    clear = clear || clearly;
    table.rows.push_back({row_name(rows[i]), with_commas(count.samples),
                          fmt::format("{:.1f} %", 100.0 * double(count.right_before) / double(count.samples)),
                          fmt::format("{:.1f} %", 100.0 * double(count.right_after) / double(count.samples)),
                          with_commas(count.fixed), with_commas(count.broken),
                          fmt::format("{:+.1f} ({:+.1f} to {:+.1f}){}", 100 * change.value, 100 * change.low,
                                      100 * change.high, clearly ? " *" : "  ")});
  }
  print("\n");
  print_table(table);
  if (clear) print_wrapped("* clearly better or worse: the 95 % interval excludes 0", 2);
  if (rows.size() > kShown) print("  … and {} more (--json has all)\n", rows.size() - kShown);
}

std::string verdict_sentence(Verdict verdict, double margin) {
  switch (verdict) {
    case Verdict::kBetter:
      return "verdict: better";
    case Verdict::kNotWorse:
      return fmt::format("verdict: not worse, within a margin of {:.2g} points", 100 * margin);
    case Verdict::kWorse:
      return fmt::format("verdict: worse by more than the margin of {:.2g} points", 100 * margin);
    default:
      return fmt::format(
          "verdict: unclear whether it is worse by more than the margin of {:.2g} points; more inputs "
          "are needed to decide",
          100 * margin);
  }
}

void print_compare(session::Session& session, const std::string& reference, const Regressions& found) {
  const std::string& metric = session.task().metric;
  print("{} → {}  on {}, {}\n", reference, session.model_name(), found.data,
        findings::counted(found.whole.samples, "input"));
  if (found.missing > 0 && found.has_right_and_wrong)  // the newer figure would be of inputs that the older never saw
    print("  accuracy {} → {}\n", figure_text("accuracy", stats::rate(found.whole.right_before, found.whole.samples)),
          figure_text("accuracy", stats::rate(found.whole.right_after, found.whole.samples)));
  else
    print("  {} {} → {}\n", metric, found.figure_before ? figure_text(metric, *found.figure_before) : "–",
          found.after.empty() ? "–" : figure_text(metric, found.after[0].estimate));
  if (!found.has_right_and_wrong) {
    const stats::Estimate& change = found.error_change;
    print_wrapped(fmt::format("predictions closer to the label: {}, farther from it: {}; mean absolute error {:+.4g} "
                              "({:+.4g} to {:+.4g})",
                              with_commas(found.whole.fixed), with_commas(found.whole.broken), change.value, change.low,
                              change.high),
                  2);
  } else {
    print_wrapped(fmt::format("{} (wrong before, correct now), {} (correct before, wrong now), net {:+}",
                              findings::counted(found.whole.fixed, "fix", "fixes"),
                              findings::counted(found.whole.broken, "regression"), found.whole.net()),
                  2);
    print_wrapped(
        fmt::format("accuracy changes by {}, {} (exact McNemar test)", observers::points_text(found.whole.change(), 2),
                    findings::p_text(stats::sign_test(found.whole.fixed, found.whole.broken))),
        2);
    print_wrapped(verdict_sentence(found.verdict, found.margin), 2);
  }
  std::vector<std::string> worse;
  for (const NamedFlips& one : found.classes)
    if (const stats::Estimate change = one.count.change(); change.high < 0)
      worse.push_back(fmt::format("{} ({:+.1f})", printable(one.name), 100 * change.value));
  if (!worse.empty()) print_wrapped("classes that are clearly worse, in points: " + join(worse, ", "), 2);
  print_counts("class", found.classes);
  print_counts("group", found.groups);
  if (found.missing > 0) print("\n  {} left out: not in {}\n", findings::counted(found.missing, "input"), reference);
}

}  // namespace

int compare(const Common& common, const CompareOptions& options) {
  session::Request request = request_of(common, options);
  // What a repair's search saw matters among the inputs that are compared, not among all tests.
  request.note = [note = request.note](const std::string& line) {
    if (note && !session::tells_of_search(line)) note(line);
  };
  session::Session session(std::move(request));
  const Examined examined = examine(common, options, session, "compare");
  if (examined.stop) return *examined.stop;
  const double margin = options.margin < 0 ? -1 : options.margin / 100;
  const Regressions found =
      compare::find_regressions(session, {options.reference, options.common_only, margin, options.product});
  const int status = found.interrupted ? 130 : 0;
  if (!found.overlap.empty()) say(common, "warning: " + found.overlap);
  const RunFolder& folder = session.folder("compare");
  Json json = compare_json(found, session.task().metric);
  json["reference"] = options.reference;
  json["model"] = session.model_name();
  json["preflight"] = evidence::preflight_json(examined.preflight);
  json["run"] = folder.path();
  mark_partial(json, status);
  write_file(folder.file("compare.json"), evidence::dump(json, 2));
  session.finish(found.seconds, status);
  if (common.json) {
    print_json(json);
  } else {
    print_compare(session, options.reference, found);
    print("\n  every fix and regression: {}/flips.csv{}\n", folder.path(),
          options.product.empty() || found.interrupted ? "" : "   baseline: " + options.product);
    if (found.verdict == Verdict::kWorse)
      print_labelled("exit", fmt::format("{}: compare only reports; netmend gate fails if a limit in netmend.toml is "
                                         "not met",
                                         status));
  }
  if (found.interrupted)
    say(common,
        fmt::format("stopped: this is the result of the first {}{}", findings::counted(found.whole.samples, "input"),
                    options.product.empty() ? "" : "; " + options.product + " was not written"));
  return status;
}

}  // namespace netmend::app
