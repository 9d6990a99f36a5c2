// Inputs that occur more than once: within a split, with other labels, in both splits.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/text.h"
#include "census/near_duplicates.h"
#include "checks/data_look.h"
#include "checks/rows.h"
#include "findings/phrases.h"
#include "slices/failing.h"
#include "slices/rules.h"
#include "stats/distributions.h"

namespace netmend::checks {
namespace {

using findings::Certainty;

constexpr double kWorthNaming = 0.005;  ///< share of repeated inputs
constexpr double kLeakSerious = 0.01;   ///< share of tests that are in training data
constexpr double kManyDifferent = 0.2;  ///< of the rows: a column with so many values tells rows apart
constexpr double kFewCollide = 0.005;   ///< of the rows of a table that has such a column

std::string figure_text(const observers::Metric& metric) {
  if (!std::isfinite(metric.estimate.value)) return "unknown";
  return observers::is_error(metric.name) ? fmt::format("{} {:.4g}", metric.name, metric.estimate.value)
                                          : fmt::format("{} {}", metric.name,
                                                        metric.estimate.value >= 1 || metric.estimate.value <= 0
                                                            ? findings::percent(metric.estimate.value)
                                                            : fmt::format("{:.2f} %", 100 * metric.estimate.value));
}

/// Mean failing without these inputs, and with them.
double without(const Side& side, const std::vector<uint8_t>& left_out) {
  stats::Moments sums;
  for (size_t i = 0; i < side.failing.size(); ++i)
    if (!left_out[i] && !std::isnan(side.failing[i])) sums.add(side.failing[i]);
  return sums.mean();
}

/// The metric with and without some inputs, in words.
std::string both_figures(const DataLook& look, const Side& side, const std::vector<uint8_t>& left_out) {
  if (side.failing.empty()) return "the network was not run on this data";
  const auto& settings = look.seen.settings;
  return fmt::format("{} with them, {} without", figure_text(slices::metric_of(settings, side.part->rows)),
                     figure_text(slices::metric_of(settings, side.part->rows, [&](size_t i) { return !left_out[i]; })));
}

/// Rows of a table collide by chance where no column tells them apart: none with many different values.
bool natural(const Side& side) {
  const census::CensusState& census = *side.census;
  const auto width = size_t(census.form().values);
  if (census.form().content != census::Content::kTable || width == 0) return false;
  const size_t rows = std::min<size_t>(census.kept.size(), 20000);
  for (size_t v = 0; v < width; ++v) {
    std::unordered_set<float> different;
    for (size_t i = 0; i < rows; ++i) different.insert(census.values[i * width + v]);
    if (double(different.size()) > kManyDifferent * double(rows)) return false;
  }
  return true;
}

/// Inputs that another one of their own split equals.
int64_t with_a_copy(const Side& side) {
  int64_t count = 0;
  for (const std::vector<int64_t>& group : census::equal_groups(side.census->hashes)) count += int64_t(group.size());
  return count;
}

/// Tests are in training data, or repeat each other, no more often than training inputs are in the rest of it: what the
/// source held before it was split, and no inputs that were moved from one side to the other.
bool as_often_as_in_training(const Side& test, const Side& train, int64_t same) {
  if (train.inputs() < 2) return false;
  const double usual = double(with_a_copy(train)) / double(train.inputs());
  return stats::binomial_tail(same, test.inputs(), std::min(1.0, 1.25 * usual)) > 0.01;
}

/// The same of sequences that are nearly the same: short ones, or those of few tokens, come close to each other by
/// nature. Of pictures nobody is excused: those that are nearly the same were made of one.
bool near_as_often_as_in_training(DataLook& look, int64_t near, int64_t looked_at) {
  const Side& train = *look.train;
  if (train.census->form().content != census::Content::kIds || train.inputs() < 2) return false;
  const census::NearSearch own = census::near_duplicates_within(*train.census, *train.part->data, look.seen.jobs());
  if (own.looked_at == 0) return false;
  // Each is compared with earlier ones: half of those that it may be close to.
  const double usual = std::min(1.0, 2.0 * double(own.pairs.size()) / double(own.looked_at));
  return stats::binomial_tail(near, looked_at, std::min(1.0, 1.25 * usual)) > 0.01;
}

/// Rows that are equal by chance: there are few different ones, or hardly any are equal.
bool collide(const Side& test, const Side& train) {
  if (test.census->form().content != census::Content::kTable) return false;
  return natural(test) || double(with_a_copy(train)) <= kFewCollide * double(train.inputs());
}

constexpr size_t kListed = 100;  ///< pairs for the views

std::string looked_text(const census::NearSearch& search) {
  return search.looked_at < search.of
             ? fmt::format(" Near-duplicates were searched for among {} evenly spaced tests only.",
                           with_commas(search.looked_at))
             : "";
}

void look_within(DataLook& look, const Side& side) {
  std::vector<uint8_t> repeats(size_t(side.inputs()), 0);
  std::vector<int64_t> exact, near;
  Results::DuplicateList list{side.part->name, {}};
  auto keep = [&](int64_t a, int64_t b) {
    if (list.pairs.size() < kListed) list.pairs.push_back({{side.part->name, a}, {side.part->name, b}});
  };
  for (const std::vector<int64_t>& group : census::equal_groups(side.census->hashes))
    for (size_t i = 1; i < group.size(); ++i)
      exact.push_back(group[i]), repeats[size_t(group[i])] = 1, keep(group[i], group[0]);
  std::string looked;
  if (&side == &look.test) {
    const census::NearSearch search = census::near_duplicates_within(*side.census, *side.part->data, look.seen.jobs());
    for (const census::DuplicatePair& pair : search.pairs)
      if (!repeats[size_t(pair.sample)])
        near.push_back(pair.sample), repeats[size_t(pair.sample)] = 1, keep(pair.sample, pair.other);
    looked = looked_text(search);
  }
  if (!list.pairs.empty()) look.found.duplicates.push_back(std::move(list));
  const auto count = int64_t(exact.size() + near.size());
  if (count < 3 || double(count) < kWorthNaming * double(side.inputs()))
    return look.pass(fmt::format("duplicates in {} data", side.words()), look.share_text(side, count));
  const double change = side.failing.empty() ? 0 : without(side, repeats) - side.mean_failing();
  // Rows that are few by nature repeat each other in training data as often.
  const bool more = &side == &look.test && look.train && !as_often_as_in_training(side, *look.train, count);
  const bool small = natural(side) && !more;
  std::string brief = look.share_text(side, count);
  auto finding = findings::make(
      "duplicates", side.part->name, look.words(side), {std::isfinite(change) && !small ? std::abs(change) : 0, 0},
      Certainty::kConfirmed, brief,
      fmt::format("{} repeat another: {}{}; {}.{}{}", brief,
                  findings::counted(int64_t(exact.size()), "exact duplicate"),
                  // Near-duplicates of training inputs among each other are not searched for.
                  &side == &look.test ? ", " + findings::counted(int64_t(near.size()), "near-duplicate") : "",
                  both_figures(look, side, repeats), looked,
                  small ? " In a table with so few distinct rows, this is to be expected." : ""));
  finding.value = double(count) / double(side.inputs());
  // So many duplicates make the tests smaller than they look, and every interval too narrow.
  if (!small && side.part->name == "test" && finding.value >= 0.2)
    finding.level = std::max(finding.level, findings::Level::kSerious);
  else if (!small && finding.value >= 0.05)
    finding.level = std::max(finding.level, findings::Level::kMinor);
  std::vector<int64_t> all = exact;
  all.insert(all.end(), near.begin(), near.end());
  finding.inputs = some(side, all);
  finding.numbers = {{"same", exact.size()}, {"near", near.size()}};
  look.found.add(std::move(finding));
}

void look_for_conflicts(DataLook& look, const Side& side) {
  if (look.classes.empty()) return;
  int64_t inputs = 0, wrong = 0;
  std::vector<int64_t> samples;
  for (const census::Conflict& conflict : census::conflicts(side.census->hashes, side.census->labels)) {
    inputs += int64_t(conflict.samples.size()), wrong += conflict.wrong_at_best;
    samples.insert(samples.end(), conflict.samples.begin(), conflict.samples.end());
  }
  if (inputs == 0) return look.pass(fmt::format("equal inputs with different labels in {} data", side.words()), "none");
  const bool small = natural(side);
  std::string brief = look.share_text(side, inputs);
  auto finding = findings::make(
      "conflicting-labels", side.part->name, look.words(side),
      {small ? 0 : double(wrong) / double(std::max<int64_t>(1, side.inputs())), 0}, Certainty::kConfirmed, brief,
      fmt::format(
          "{} are identical to an input with another label, so at least {} of the predictions for them must be "
          "wrong.{}",
          brief, with_commas(wrong),
          small ? " In a table with so few distinct rows, this is to be expected: its columns do not distinguish such "
                  "cases."
                : ""));
  finding.value = double(wrong) / double(std::max<int64_t>(1, side.inputs()));
  finding.inputs = some(side, samples);
  finding.numbers = {{"inputs", inputs}, {"wrong_at_best", wrong}};
  look.found.add(std::move(finding));
}

void look_between(DataLook& look) {
  const Side &test = look.test, &train = *look.train;
  std::vector<uint8_t> repeated(size_t(test.inputs()), 0);
  std::vector<int64_t> samples;
  Results::DuplicateList list{"train-test", {}};
  auto take = [&](const std::vector<census::DuplicatePair>& found) {
    int64_t count = 0;
    for (const census::DuplicatePair& pair : found)
      if (!repeated[size_t(pair.sample)]) {
        repeated[size_t(pair.sample)] = 1, samples.push_back(pair.sample), ++count;
        if (list.pairs.size() < kListed) list.pairs.push_back({{"test", pair.sample}, {"train", pair.other}});
      }
    return count;
  };
  const int64_t same = take(census::exact_duplicates(test.census->hashes, train.census->hashes));
  census::NearSearch search =
      census::near_duplicates(*test.census, *test.part->data, *train.census, *train.part->data, look.seen.jobs());
  const int64_t near = take(search.pairs), count = same + near;
  const std::string looked = looked_text(search);
  if (!list.pairs.empty()) look.found.duplicates.push_back(std::move(list));
  if (count == 0) return look.pass("tests that are in training data", "none");
  const double now = test.mean_failing(), apart = test.failing.empty() ? 0 : without(test, repeated) - now;
  const bool inherited = as_often_as_in_training(test, train, same) &&
                         (4 * near <= same || near_as_often_as_in_training(look, near, search.looked_at));
  const bool small = inherited && collide(test, train);
  if (small && near == 0 && !natural(test))
    return look.pass(
        "tests that are in training data",
        fmt::format("{}, no more often than training rows repeat each other", look.share_text(test, same)));
  std::string brief =
      fmt::format("{}: {}, {}", findings::counted(count, "test"), findings::counted(same, "exact duplicate"),
                  findings::counted(near, "near-duplicate"));
  // Only what flatters counts: without the duplicates more predictions would be wrong.
  auto finding = findings::make(
      "split-leak", "train-test", look.words(test), {std::isfinite(apart) && !small ? std::max(0.0, apart) : 0, 0},
      Certainty::kConfirmed, brief,
      fmt::format("{} {} also in training data: {}, {}; {}.{}{}", look.share_text(test, count),
                  count == 1 ? "is" : "are", findings::counted(same, "exact duplicate"),
                  findings::counted(near, "near-duplicate"), both_figures(look, test, repeated), looked,
                  small       ? " Training rows repeat each other about as often, so this is to be expected."
                  : inherited ? " Training inputs repeat each other about as often: the source held these "
                                "duplicates before it was split."
                              : ""));
  finding.value = double(count) / double(std::max<int64_t>(1, test.inputs()));
  finding.inputs = some(test, samples);
  finding.numbers = {{"same", same}, {"near", near}, {"looked_at", search.looked_at}};
  // A test set of which a part was seen in training judges nothing, whatever the two figures are; of what the source
  // itself repeats the figures tell what it costs.
  if (!inherited && finding.value >= kLeakSerious) finding.level = findings::Level::kSerious;
  if (inherited && !small && finding.value >= kLeakSerious)
    finding.level = std::max(finding.level, findings::Level::kMinor);
  look.found.add(std::move(finding));
}

}  // namespace

void check_duplicates(Observed& seen, Results& out) {
  DataLook look(seen, out);
  for (const Side* side : look.sides()) look_within(look, *side);
}

void check_conflicting_labels(Observed& seen, Results& out) {
  DataLook look(seen, out);
  for (const Side* side : look.sides()) look_for_conflicts(look, *side);
}

void check_split_leak(Observed& seen, Results& out) {
  DataLook look(seen, out);
  if (look.train->census->form().content == look.test.census->form().content) look_between(look);
}

}  // namespace netmend::checks
