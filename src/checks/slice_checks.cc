// Where the network is weak: rules over columns and properties, and groups whose rates differ.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/shell.h"
#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "observers/figures.h"
#include "slices/failing.h"
#include "slices/groups.h"
#include "slices/rules.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using findings::Effect;
using slices::Group;
using slices::Rate;
using slices::Slice;

constexpr double kExplained = 0.5, kAllExplained = 0.85;  ///< part of a gap that confidence and class explain
constexpr double kGap = 0.02;
constexpr double kLooksCost = 0.02;  ///< of the metric, for rules about how pictures look

bool is_number(const observers::PredictionSettings& settings) {
  return settings.task == observers::Task::kNumber && settings.tolerance < 0;
}

std::string right_text(const stats::Estimate& failing) {
  return fmt::format("{:.1f} % ({:.1f}–{:.1f})", 100 * (1 - failing.value), 100 * (1 - failing.high),
                     100 * (1 - failing.low));
}

void add_slice(const Observed& seen, const std::vector<slices::Column>& columns, const Slice& slice,
               const std::vector<double>& failing, double unit, Results& found) {
  const bool number = is_number(seen.settings);
  findings::Words words = seen.words({{"rule", slice.words}});
  std::string brief, evidence;
  if (number) {
    brief = fmt::format("mean error {:.4g} on {} inputs, elsewhere {:.4g}", slice.here.value * unit,
                        with_commas(slice.inputs), slice.rest.value * unit);
    evidence =
        fmt::format("Where {}: mean error {:.4g} ({:.4g}–{:.4g}) against {:.4g}", slice.words, slice.here.value * unit,
                    slice.here.low * unit, slice.here.high * unit, slice.rest.value * unit);
  } else {
    brief = fmt::format("{:.1f} % on {} inputs, elsewhere {:.1f} %", 100 * (1 - slice.here.value),
                        with_commas(slice.inputs), 100 * (1 - slice.rest.value));
    evidence = fmt::format("Where {}: accuracy {} against {} elsewhere, {:.1f} points lower ({:.1f}–{:.1f})",
                           slice.words, right_text(slice.here), right_text(slice.rest), 100 * slice.behind.value,
                           100 * slice.behind.low, 100 * slice.behind.high);
  }
  evidence += fmt::format("; on {} inputs that the rule was not searched on, p = {:.1g}.", with_commas(slice.judged_on),
                          slice.p);
  const bool knows = slice.explained_by_confidence >= kExplained;
  if (knows)
    evidence += fmt::format(
        " Lower confidence and harder classes there explain {:.0f} % of the gap: these inputs are hard rather than "
        "treated differently.",
        100 * slice.explained_by_confidence);
  auto finding = findings::make("weak-slice", slice.name, words, {slice.gain, slice.behind.value}, Certainty::kLikely,
                                brief, evidence);
  if (knows)
    finding.level = std::min(finding.level, slice.explained_by_confidence >= kAllExplained ? findings::Level::kNote
                                                                                           : findings::Level::kMinor);
  // A group that the data keeps aside can be aimed at.
  const slices::Term& first = slice.rule.terms[0];
  if (slice.rule.terms.size() == 1 && first.op == slices::Term::kIs && columns[first.column].aside)
    finding.next.push_back(seen.session.command("repair", {"--on", "slice=" + slice.name, "-o", "fixed.onnx"}));
  // How hard pictures are always goes with how they look; that is serious when it costs much.
  const bool properties = std::all_of(slice.rule.terms.begin(), slice.rule.terms.end(),
                                      [&](const slices::Term& term) { return columns[term.column].property; });
  if (properties && slice.gain < kLooksCost) finding.level = std::min(finding.level, findings::Level::kMinor);
  std::vector<size_t> rows = slice.rows;
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return failing[a] > failing[b]; });
  for (size_t i = 0; i < std::min<size_t>(12, rows.size()); ++i)
    finding.inputs.push_back({seen.test->name, int64_t(rows[i])});
  finding.numbers = {{"rule", slice.words},
                     {"inputs", slice.inputs},
                     {"judged_on", slice.judged_on},
                     {"behind", slice.behind.value},
                     {"behind_low", slice.behind.low},
                     {"behind_high", slice.behind.high},
                     {"p", slice.p},
                     {"explained_by_confidence", slice.explained_by_confidence}};
  found.add(std::move(finding));
}

/// A rate that is worse for a group than for everybody else, clearly and by enough.
struct Gap {
  const Group* group = nullptr;
  const Rate* rate = nullptr;
  bool missed = false;  ///< the true positive rate is lower; else the false positive rate is higher
  double size = 0;
};

std::optional<Gap> gap_of(const Group& group) {
  std::optional<Gap> worst;
  auto look = [&](const std::optional<Rate>& rate, bool missed) {
    if (!rate || rate->count < 50 || !(rate->p < (group.columns.size() > 1 ? 0.01 : 0.05))) return;
    const double size = missed ? -rate->apart.value : rate->apart.value;
    if (std::isfinite(size) && size >= kGap && (!worst || size > worst->size))
      worst = Gap{&group, &*rate, missed, size};
  };
  look(group.true_positive, true);
  look(group.false_positive, false);
  return worst;
}

void add_gap(const Observed& seen, const Gap& gap, int64_t inputs, Results& found) {
  const Rate& rate = *gap.rate;
  const std::string name = gap.group->name(), positive = seen.settings.classes[size_t(seen.settings.positive)];
  const std::string what = gap.missed ? fmt::format("{} is missed more often", positive)
                                      : fmt::format("{} is wrongly predicted more often", positive);
  findings::Words words = seen.words({{"group", name}, {"what", what}, {"column", join(gap.group->columns, ",")}});
  const char* kind = gap.missed ? "true positive rate" : "false positive rate";
  std::string brief = fmt::format("{} {:.1f} % against {:.1f} %", kind, 100 * rate.here.value, 100 * rate.rest.value);
  const double share = inputs ? double(rate.count) / double(inputs) : 0;
  auto finding = findings::make(
      "group-gap", name, words, {gap.size * share, gap.size}, Certainty::kConfirmed, brief,
      fmt::format(
          "{} ({} inputs, {:.1f}–{:.1f}) for {}; gap {:.1f} points ({:.1f}–{:.1f}), p = {:.1g} after correction.",
          brief, with_commas(rate.count), 100 * rate.here.low, 100 * rate.here.high, name, 100 * gap.size,
          100 * (gap.missed ? -rate.apart.high : rate.apart.low),
          100 * (gap.missed ? -rate.apart.low : rate.apart.high), rate.p));
  finding.numbers = {
      {"rate", kind}, {"here", rate.here.value}, {"rest", rate.rest.value}, {"inputs", rate.count}, {"p", rate.p}};
  found.add(std::move(finding));
}

/// Columns and properties of the tests, and how wrong each prediction is.
struct Table {
  std::vector<slices::Column> columns;
  std::vector<double> failing;
};
Table table_of(const Observed& seen) {
  std::vector<int64_t> inputs(seen.test->rows.size());
  std::iota(inputs.begin(), inputs.end(), 0);
  return {slices::columns_of(*seen.test->data, *seen.test->census, inputs),
          slices::failing_of(seen.settings, seen.test->rows)};
}

}  // namespace

void check_groups(Observed& seen, Results& found) {
  const Table table = table_of(seen);
  std::vector<Group> groups = slices::compare_groups(table.columns, seen.test->rows, table.failing, seen.settings);
  if (!seen.settings.by_class() || seen.settings.classes.size() != 2) return;
  std::vector<Gap> gaps;
  int64_t small = 0;
  for (const Group& group : groups) {
    small += group.too_small;
    // What most of all inputs share is the rule, and the gap is that of the others.
    if (group.too_small || 10 * group.inputs > 7 * int64_t(seen.test->rows.size())) continue;
    if (auto gap = gap_of(group)) gaps.push_back(*gap);
  }
  std::stable_sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) {
    if (a.group->columns.size() != b.group->columns.size()) return a.group->columns.size() < b.group->columns.size();
    return a.size > b.size;
  });
  // One per column; an intersection only where it is clearly worse than what its columns show already.
  std::map<std::string, double> said;
  for (const Gap& gap : gaps) {
    double known = 0;
    bool again = gap.group->columns.size() == 1 && said.count(gap.group->columns[0]);
    for (const std::string& column : gap.group->columns) known = std::max(known, said[column]);
    if (gap.group->columns.size() > 1 && gap.size < known + 0.05) again = true;
    if (again || said.size() > 8) continue;
    for (const std::string& column : gap.group->columns) said[column] = std::max(said[column], gap.size);
    add_gap(seen, gap, int64_t(seen.test->rows.size()), found);
  }
  if (gaps.empty()) found.passed.push_back({"gaps between groups", fmt::format("none of {} groups", groups.size())});
  if (small > 0)
    found.skipped.push_back({fmt::format("{} group{} too small to judge", with_commas(small), small == 1 ? "" : "s"),
                             "at least 50 inputs of each"});
}

void check_slices(Observed& seen, Results& found) {
  const Table table = table_of(seen);
  if (table.columns.empty())
    return found.skip("weak slices", "columns kept aside (groups=, meta=): these inputs have no plain properties");
  std::vector<uint8_t> half = slices::halves(seen.test->census->hashes, seen.seed());
  std::vector<double> expected;
  if (seen.settings.by_class()) {
    std::vector<float> confidence;
    std::vector<double> classes;
    for (const observers::SampleRow& row : seen.test->rows)
      confidence.push_back(row.confidence), classes.push_back(row.label);
    expected = slices::expected_errors(confidence, classes, table.failing, half);
  }
  slices::Weakness weak = slices::find_weak(table.columns, table.failing, half, expected);
  const double unit = slices::error_unit(seen.settings, seen.test->rows);
  for (const Slice& slice : weak.slices) add_slice(seen, table.columns, slice, table.failing, unit, found);
  if (weak.slices.empty())
    found.pass("weak slices",
               fmt::format("none of {} rules over {} columns", with_commas(weak.rules), table.columns.size()));
  found.slices = std::move(weak.slices);
}

}  // namespace netmend::checks
