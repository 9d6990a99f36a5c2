// Where the network is weak: rules over columns and properties, and groups whose rates differ.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/escape.h"
#include "base/text.h"
#include "census/comparison.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "checks/simple_models.h"
#include "findings/phrases.h"
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

constexpr double kHarderClasses = 0.5;  ///< part of a gap that harder classes explain: then it is theirs
constexpr double kGap = 0.02;
constexpr double kLooksOther = 0.5;         ///< KS distance of a property of a group from that of all others
constexpr double kAsApart = 0.05;           ///< properties that differ as much: the first one is told
constexpr double kLessConfident = 0.1;      ///< mean confidence, for such a group to be told
constexpr double kMuchLessConfident = 0.2;  ///< and to be serious
constexpr double kMuch = 0.02;              ///< of the metric, for rules about what the network is given itself

using findings::counted;
using findings::p_text;
using findings::percent;
using findings::percent_range;
using findings::plain;

bool is_number(const observers::PredictionSettings& settings) {
  return settings.task == observers::Task::kNumber && settings.tolerance < 0;
}

std::string right_text(const stats::Estimate& failing) {
  return fmt::format("{} ({})", percent(1 - failing.value), percent_range(1 - failing.high, 1 - failing.low));
}

std::string points_range(double low, double high) { return fmt::format("{:.1f} to {:.1f}", 100 * low, 100 * high); }

std::string part_text(double part) { return part >= 1 ? "all" : percent(part); }

/// What a gap may be put down to other than the slice itself.
struct Explained {
  double by_class = 0;  ///< part that the classes of its inputs explain
};

/// The level that the gap itself asks for, less where it says nothing new.
findings::Level slice_level(findings::Level asked, const std::vector<slices::Column>& columns, const Slice& slice,
                            const Explained& explained) {
  auto all = [&](auto holds) {
    return std::all_of(slice.rule.terms.begin(), slice.rule.terms.end(),
                       [&](const slices::Term& term) { return holds(columns[term.column]); });
  };
  // A source that the data keeps aside (a camera, a site) should not matter: lower confidence there is part of the
  // alarm, and no excuse; harder classes are one.
  auto if_harder = [&](findings::Level level) {
    return explained.by_class >= kHarderClasses ? std::min(level, findings::Level::kMinor) : level;
  };
  if (!all([](const slices::Column& column) { return !column.aside; })) return if_harder(asked);
  // How hard an input is always goes with what it holds and how it looks; serious is what costs much.
  if (slice.gain < kMuch) asked = std::min(asked, findings::Level::kMinor);
  if (all([](const slices::Column& column) { return column.property; })) return if_harder(asked);
  // Of columns that the network is given, some values go with harder classes: that is a note. Where it is less
  // confident for another reason, it is worth a look.
  if (slice.explained_by_confidence < slices::kMostlyExplained) return asked;
  return std::min(asked, explained.by_class >= kHarderClasses ? findings::Level::kNote : findings::Level::kMinor);
}

/// Made of nothing that the data keeps aside, as a camera or a site would be.
bool is_given(const std::vector<slices::Column>& columns, const Slice& slice) {
  return std::none_of(slice.rule.terms.begin(), slice.rule.terms.end(),
                      [&](const slices::Term& term) { return columns[term.column].aside; });
}

/// Where inputs are hard for a simple model as well: "" where they are not, or where it is not known.
std::string as_hard(Observed& seen, const Slice& slice) {
  std::vector<uint8_t> in(seen.test->rows.size());
  for (const size_t row : slice.rows) in[row] = 1;
  return as_hard_for_simple(seen, [&](size_t row) { return int(in[row]); });
}

void add_slice(Observed& seen, const std::vector<slices::Column>& columns, const Slice& slice,
               const std::vector<double>& failing, double unit, const Explained& explained, Results& found) {
  const bool number = is_number(seen.settings);
  findings::Words words = seen.words({{"rule", slice.words}});
  const std::string held_out = counted(slice.judged_on, "held-out input");
  std::string brief, evidence = fmt::format("Where {}, ", slice.words);
  if (number) {
    brief = fmt::format("mean error {} on {}, elsewhere {}", plain(slice.here.value * unit), held_out,
                        plain(slice.rest.value * unit));
    evidence +=
        fmt::format("the mean error is {} ({} to {}) against {} elsewhere", plain(slice.here.value * unit),
                    plain(slice.here.low * unit), plain(slice.here.high * unit), plain(slice.rest.value * unit));
  } else {
    brief = fmt::format("accuracy {} on {}, elsewhere {}", percent(1 - slice.here.value), held_out,
                        percent(1 - slice.rest.value));
    evidence += fmt::format("accuracy is {} against {} elsewhere, {} lower ({})", right_text(slice.here),
                            right_text(slice.rest), findings::points(slice.behind.value),
                            points_range(slice.behind.low, slice.behind.high));
  }
  evidence += fmt::format(
      ", {}. The rule holds for {}; the figures are for the {} of them that were not used to find "
      "it.",
      p_text(slice.p), counted(slice.inputs, "input"), with_commas(slice.judged_on));
  if (slice.explained_by_confidence >= slices::kMostlyExplained)
    evidence += fmt::format(" Confidence and class explain {} of the gap.", part_text(slice.explained_by_confidence));
  if (explained.by_class >= kHarderClasses)
    evidence += fmt::format(" Harder classes alone explain {} of the gap.", part_text(explained.by_class));
  auto finding = findings::make("weak-slice", slice.name, words, {slice.gain, slice.behind.value}, Certainty::kLikely,
                                brief, evidence);
  finding.level = slice_level(finding.level, columns, slice, explained);
  if (finding.level >= findings::Level::kSerious && !number && is_given(columns, slice))
    if (const std::string why = as_hard(seen, slice); !why.empty())
      finding.level = findings::Level::kMinor, finding.evidence += why;
  // A group that the data keeps aside can be aimed at.
  const slices::Term& first = slice.rule.terms[0];
  if (slice.rule.terms.size() == 1 && first.op == slices::Term::kIs && columns[first.column].aside)
    finding.next.push_back(seen.session.command("repair", {"--on", "slice=" + slice.name, "-o", "fixed.onnx"}));
  std::vector<size_t> rows = slice.rows;
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return failing[a] > failing[b]; });
  for (size_t i = 0; i < std::min<size_t>(12, rows.size()); ++i)
    finding.inputs.push_back({seen.test->name, int64_t(rows[i])});
  finding.numbers = {{"rule", slice.words},
                     {"inputs", slice.inputs},
                     {"judged_on", slice.judged_on},
                     {"behind", slice.behind.value},
                     {"explained_by_class", explained.by_class},
                     {"behind_low", slice.behind.low},
                     {"behind_high", slice.behind.high},
                     {"p", slice.p},
                     {"explained_by_confidence", slice.explained_by_confidence}};
  if (!is_given(columns, slice)) {
    found.groups.push_back({finding.id(), std::vector<uint8_t>(seen.test->rows.size())});
    for (const size_t row : slice.rows) found.groups.back().in[row] = 1;
  }
  found.add(std::move(finding));
}

/// A rate that is worse for a group than for everybody else, clearly and by enough.
struct Gap {
  enum What { kMissed, kWronglyPredicted, kErrors };
  const Group* group = nullptr;
  const Rate* rate = nullptr;
  What what = kErrors;
  double size = 0;
};

std::optional<Gap> gap_of(const Group& group) {
  std::optional<Gap> worst;
  auto look = [&](const Rate* rate, Gap::What what) {
    if (!rate || rate->count < 50 || !(rate->p < (group.columns.size() > 1 ? 0.01 : 0.05))) return;
    const double size = what == Gap::kMissed ? -rate->apart.value : rate->apart.value;
    if (std::isfinite(size) && size >= kGap && (!worst || size > worst->size)) worst = Gap{&group, rate, what, size};
  };
  look(group.true_positive ? &*group.true_positive : nullptr, Gap::kMissed);
  look(group.false_positive ? &*group.false_positive : nullptr, Gap::kWronglyPredicted);
  if (!worst) look(&group.failing, Gap::kErrors);
  return worst;
}

/// Which rows are of the group.
std::vector<uint8_t> rows_of(const std::vector<slices::Column>& columns, const Group& group, size_t count) {
  std::vector<uint8_t> in(count, 1);
  for (size_t i = 0; i < group.columns.size(); ++i)
    for (const slices::Column& column : columns)
      if (column.name == group.columns[i] && column.is_words())
        for (size_t row = 0; row < count; ++row)
          if (column.codes[row] < 0 || column.words[size_t(column.codes[row])] != group.values[i]) in[row] = 0;
  return in;
}

void add_gap(const Observed& seen, const Gap& gap, int64_t inputs, Results& found) {
  const Rate& rate = *gap.rate;
  const std::string name = gap.group->name();
  std::string what = "accuracy is lower", kind = "accuracy";
  if (gap.what != Gap::kErrors) {
    const std::string positive = seen.settings.classes[size_t(seen.settings.positive)];
    what = fmt::format("{} is {} more often", positive, gap.what == Gap::kMissed ? "missed" : "wrongly predicted");
    kind = gap.what == Gap::kMissed ? "true positive rate" : "false positive rate";
  }
  // Errors are shown as accuracy, and lower is worse as it is of the true positive rate.
  const bool errors = gap.what == Gap::kErrors;
  auto shown = [&](const stats::Estimate& one) {
    return errors ? stats::Estimate{1 - one.value, 1 - one.high, 1 - one.low} : one;
  };
  const stats::Estimate here = shown(rate.here), rest = shown(rate.rest);
  const bool lower = gap.what == Gap::kMissed;
  findings::Words words = seen.words({{"group", name}, {"what", what}, {"column", join(gap.group->columns, ",")}});
  const double share = inputs ? double(rate.count) / double(inputs) : 0;
  auto finding = findings::make(
      "group-gap", name, words, {gap.size * share, gap.size}, Certainty::kConfirmed,
      fmt::format("{} {} against {}", kind, percent(here.value), percent(rest.value)),
      fmt::format(
          "For {} the {} is {} ({}; {}), for all others it is {}: a gap of {} ({}), {} after correction.", name, kind,
          percent(here.value), percent_range(here.low, here.high), counted(rate.count, "input"), percent(rest.value),
          findings::points(gap.size),
          lower ? points_range(-rate.apart.high, -rate.apart.low) : points_range(rate.apart.low, rate.apart.high),
          p_text(rate.p)));
  // A threshold is one of two classes.
  if (errors && seen.settings.classes.size() != 2)
    finding.next = {seen.session.command("slices", {"--groups", join(gap.group->columns, ",")})};
  finding.numbers = {{"rate", kind}, {"here", here.value}, {"rest", rest.value}, {"inputs", rate.count}, {"p", rate.p}};
  found.add(std::move(finding));
}

/// A group whose inputs look different from all others, by the property that differs most, and how confident the
/// network is there.
struct LooksOther {
  const slices::Column* property = nullptr;
  double distance = 0, median_here = 0, median_rest = 0;
  stats::Moments confidence_here, confidence_rest;
  double drop() const { return confidence_rest.mean() - confidence_here.mean(); }
};

LooksOther looks_other(const Observed& seen, const std::vector<slices::Column>& columns,
                       const std::vector<uint8_t>& in) {
  LooksOther most;
  for (size_t i = 0; i < in.size(); ++i)
    if (const double confidence = seen.test->rows[i].confidence; std::isfinite(confidence))
      (in[i] ? most.confidence_here : most.confidence_rest).add(confidence);
  for (const slices::Column& column : columns) {
    if (!column.property || column.is_words() || column.numbers.size() != in.size()) continue;
    std::vector<float> here, rest;
    for (size_t i = 0; i < in.size(); ++i)
      if (std::isfinite(column.numbers[i])) (in[i] ? here : rest).push_back(column.numbers[i]);
    if (here.size() < 50 || rest.size() < 50) continue;
    const double distance = census::ks_distance(here, rest);
    if (distance <= most.distance + kAsApart) continue;
    most.property = &column, most.distance = distance;
    most.median_here = census::quantile(here, 0.5), most.median_rest = census::quantile(rest, 0.5);
  }
  return most;
}

/// A camera whose images are darker: that confidence falls there is part of the alarm, though predictions still hold.
bool add_looks_other(const Observed& seen, const Group& group, const LooksOther& most, Results& found) {
  if (!most.property || most.distance < kLooksOther || most.confidence_rest.count() < 50 ||
      !(most.drop() >= kLessConfident))
    return false;
  const std::string& property = most.property->name;
  const char* how = most.median_here < most.median_rest ? "lower" : "higher";
  const double here = most.confidence_here.mean(), rest = most.confidence_rest.mean();
  findings::Words words =
      seen.words({{"group", group.name()},
                  {"what", fmt::format("its {} is {}, and the network is less confident", property, how)},
                  {"column", join(group.columns, ",")}});
  auto finding = findings::make(
      "group-gap", group.name(), words, {}, Certainty::kLikely,
      fmt::format("median {} {} against {}, mean confidence {} against {}", property, plain(most.median_here),
                  plain(most.median_rest), percent(here), percent(rest)),
      fmt::format("For {} ({}) the median {} is {}, for all others it is {} (a KS distance of {:.2f}; 0 means equal "
                  "distributions, 1 no overlap). Mean confidence is {} there and {} elsewhere; accuracy is {} and {}.",
                  group.name(), counted(group.inputs, "input"), property, plain(most.median_here),
                  plain(most.median_rest), most.distance, percent(here), percent(rest),
                  percent(1 - group.failing.here.value), percent(1 - group.failing.rest.value)));
  finding.level = most.drop() >= kMuchLessConfident ? findings::Level::kSerious : findings::Level::kMinor;
  finding.value = most.drop();
  finding.next = {seen.session.command("slices", {"--groups", join(group.columns, ",")})};
  finding.numbers = {{"rate", "confidence"}, {"here", here}, {"rest", rest}, {"inputs", group.inputs}};
  found.add(std::move(finding));
  return true;
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
  if (is_number(seen.settings)) return;
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
    found.groups.push_back({found.findings.back().id(), rows_of(table.columns, *gap.group, seen.test->rows.size())});
  }
  bool other = false;
  for (const Group& group : groups) {
    if (group.too_small || group.columns.size() != 1 || said.count(group.columns[0]) ||
        10 * group.inputs > 7 * int64_t(seen.test->rows.size()))
      continue;
    std::vector<uint8_t> in = rows_of(table.columns, group, seen.test->rows.size());
    const LooksOther most = looks_other(seen, table.columns, in);
    if (!add_looks_other(seen, group, most, found)) continue;
    said[group.columns[0]] = kGap, other = true;
    found.groups.push_back({found.findings.back().id(), std::move(in)});
  }
  if (gaps.empty() && !other)
    found.pass("gaps between groups", fmt::format("{} compared", counted(int64_t(groups.size()) - small, "group")));
  if (small > 0)
    found.skipped.push_back({fmt::format("{} group{} too small to judge", with_commas(small), small == 1 ? "" : "s"),
                             "at least 50 inputs of each"});
}

void check_slices(Observed& seen, Results& found) {
  const Table table = table_of(seen);
  if (table.columns.empty())
    return found.skip("weak slices",
                      "group columns (groups=, meta=), since these inputs have no properties to slice by");
  std::vector<uint8_t> half = slices::halves(seen.test->census->hashes, seen.seed());
  std::vector<double> expected, by_class;
  if (seen.settings.by_class()) {
    std::vector<float> confidence;
    std::vector<double> classes;
    for (const observers::SampleRow& row : seen.test->rows)
      confidence.push_back(row.confidence), classes.push_back(row.label);
    expected = slices::expected_errors(confidence, classes, table.failing, half);
    by_class = slices::expected_errors(std::vector<float>(confidence.size(), 0), classes, table.failing, half);
  }
  slices::Weakness weak = slices::find_weak(table.columns, table.failing, half, expected);
  const double unit = slices::error_unit(seen.settings, seen.test->rows);
  for (const Slice& slice : weak.slices) {
    const Explained explained{slices::explained_part(slice, table.failing, half, by_class)};
    add_slice(seen, table.columns, slice, table.failing, unit, explained, found);
  }
  if (weak.slices.empty())
    found.pass("weak slices", fmt::format("none found by {} over {}", counted(weak.rules, "rule"),
                                          counted(int64_t(table.columns.size()), "column")));
  found.slices = std::move(weak.slices);
}

}  // namespace netmend::checks
