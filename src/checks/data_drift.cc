// How test data differs from training data, column by column and property by property; and columns that leak the
// label.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "census/comparison.h"
#include "checks/data_look.h"
#include "checks/rows.h"
#include "dataset/preprocess.h"
#include "findings/phrases.h"
#include "slices/rules.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using findings::plain;
using slices::Column;

constexpr double kDrift = 0.1;  ///< distance of distributions beyond what chance gives
constexpr double kApart = 0.3;  ///< from here on the parts hardly overlap, and the gap to training is put down to it
constexpr double kMoved = 1, kScaled = 2;  ///< mean by so many deviations; deviation by this factor
constexpr double kSameValue = 1e-3;        ///< deviations
constexpr size_t kMostDrifts = 5;
constexpr size_t kFewestTogether = 3;  ///< columns of numbers, to be looked at together
constexpr double kFarOut = 25;         ///< squared deviations of one value, at most
constexpr size_t kMostGroups = 50;     ///< values of a column, for them to be groups

std::vector<int64_t> all_of(const Side& side) {
  std::vector<int64_t> inputs(size_t(side.inputs()));
  std::iota(inputs.begin(), inputs.end(), 0);
  return inputs;
}

std::vector<Column> columns_of(const Side& side) {
  return slices::columns_of(*side.part->data, *side.census, all_of(side));
}

std::vector<int64_t> word_counts(const Column& column, const std::vector<std::string>& words) {
  std::vector<int64_t> counts(words.size(), 0);
  for (int32_t code : column.codes) {
    if (code < 0) continue;
    auto at = std::find(words.begin(), words.end(), column.words[size_t(code)]);
    if (at != words.end()) ++counts[size_t(at - words.begin())];
  }
  return counts;
}

/// In which of a few bins of the training data each input lies.
struct Bins {
  std::vector<float> edges;
  std::vector<std::string> words;
  explicit Bins(const Column& train) {
    if (train.is_words()) {
      words = train.words;
      return;
    }
    for (int k = 1; k < 10; ++k) edges.push_back(float(census::quantile(train.numbers, k / 10.0)));
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  size_t count() const { return words.empty() ? edges.size() + 1 : words.size() + 1; }
  size_t of(const Column& column, size_t row) const {
    if (words.empty()) return size_t(std::upper_bound(edges.begin(), edges.end(), column.numbers[row]) - edges.begin());
    if (column.codes[row] < 0) return words.size();
    return size_t(std::find(words.begin(), words.end(), column.words[size_t(column.codes[row])]) - words.begin());
  }
};

/// How many fewer predictions would be wrong if test inputs were spread over the bins as training inputs are; 0 where
/// the tests do not say.
double gain_if_spread_alike(const Side& test, const Column& here, const Column& there) {
  if (test.failing.empty()) return 0;
  Bins bins(there);
  std::vector<stats::Moments> failing(bins.count());
  std::vector<double> share(bins.count(), 0);
  for (size_t i = 0; i < test.failing.size(); ++i)
    if (!std::isnan(test.failing[i])) failing[bins.of(here, i)].add(test.failing[i]);
  const size_t rows = there.is_words() ? there.codes.size() : there.numbers.size();
  for (size_t i = 0; i < rows; ++i) share[bins.of(there, i)] += 1.0 / double(rows);
  double weighted = 0, known = 0, now = test.mean_failing(), variance = 0;
  for (size_t b = 0; b < share.size(); ++b) {
    if (failing[b].count() < 20) continue;
    weighted += share[b] * failing[b].mean(), known += share[b];
    variance += share[b] * share[b] * failing[b].sample_variance() / double(failing[b].count());
  }
  if (known < 0.8) return 0;
  const double gain = now - weighted / known;
  return gain > 2 * std::sqrt(variance) ? gain : 0;
}

/// What of the gap between the parts may be put down to a difference that leaves little overlap.
double gap_to_training(const DataLook& look) {
  const double gap = look.test.mean_failing() - look.train->mean_failing();
  return std::isfinite(gap) ? std::max(0.0, gap) : 0;
}

std::string gap_words(const DataLook& look, double gap) {
  if (look.test.failing.empty() || look.train->failing.empty()) return "The network was not run on both splits.";
  const char* what = look.of_numbers() ? "mean error" : "error rate";
  if (gap < 0.0005) return fmt::format("The {} on the tests is not measurably higher than on the training data.", what);
  return fmt::format("The {} on the tests is higher by {}.", what, look.amount_text(gap));
}

std::string start_of_sentence(std::string text) {
  if (!text.empty()) text[0] = char(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

/// `test images are darker: mean -0.33, SD 0.24; training mean 0.00, SD 1.00`
std::string range_words(const census::Form& form, size_t column, const stats::Moments& here,
                        const stats::Moments& there) {
  const double spread = there.deviation();
  auto number = [&](double value) {
    if (!(spread >= 0.1 && spread < 1e4)) return plain(value);
    const std::string text = fmt::format("{:.{}f}", value, spread >= 100 ? 0 : spread >= 10 ? 1 : 2);
    return text.find_first_not_of("-0.") == text.npos && text[0] == '-' ? text.substr(1) : text;
  };
  const std::string figures = fmt::format("mean {}, SD {}; training mean {}, SD {}", number(here.mean()),
                                          number(here.deviation()), number(there.mean()), number(spread));
  if (form.content != census::Content::kPictures) return fmt::format("{}: {}", form.columns[column], figures);
  const bool moved = std::abs(here.mean() - there.mean()) > kMoved * spread;
  const char* how = moved                       ? here.mean() < there.mean() ? "are darker" : "are brighter"
                    : here.deviation() < spread ? "have less contrast"
                                                : "have more contrast";
  const std::string where = form.columns.size() > 1 ? " in " + form.columns[column] : "";
  return fmt::format("test images {}{}: {}", how, where, figures);
}

/// Values of all inputs together have moved or were scaled: what a forgotten step of preprocessing looks like.
bool look_at_range(DataLook& look) {
  const auto &tests = look.test.census->moments, &trains = look.train->census->moments;
  const census::Form& form = look.test.census->form();
  if (tests.size() != trains.size() || form.content == census::Content::kIds) return false;
  size_t shifted = 0, numbers = 0, worst = 0;
  double most = 0;
  for (size_t c = 0; c < tests.size(); ++c) {
    if (form.content == census::Content::kTable && !form.source.empty() && form.source[c].is_category()) continue;
    const auto& others = look.train->census->form().source;
    if (c < form.source.size() && c < others.size() && form.source[c].in_units != others[c].in_units) continue;
    const double before = trains[c].deviation(), after = tests[c].deviation();
    if (trains[c].count() < 100 || tests[c].count() < 100 || before <= 0) continue;
    ++numbers;
    const double moved = std::abs(tests[c].mean() - trains[c].mean()) / before;
    const double scaled = after > 0 ? std::max(after / before, before / after) : INFINITY;
    if (moved <= kMoved && scaled <= kScaled) continue;
    ++shifted;
    if (const double size = std::min(1e6, std::max(moved / kMoved, scaled / kScaled)); size > most)
      most = size, worst = c;
  }
  if (shifted == 0 || 2 * shifted < numbers) {
    look.pass("ranges, training against tests", "alike");
    return false;
  }
  const auto &here = tests[worst], &there = trains[worst];
  const std::string brief = range_words(form, worst, here, there);
  const double gap = gap_to_training(look);
  auto finding = findings::make(
      "range-shift", "train-test", look.words(look.test), {gap, 0}, Certainty::kLikely, brief,
      fmt::format("{}{}. The test values go from {} to {}, those of training from {} to {}. Of {}, {} differ{} in the "
                  "mean by more "
                  "than one standard deviation or in the standard deviation by more than a factor of two. {}",
                  start_of_sentence(brief),
                  form.content == census::Content::kPictures ? " (of the values as the network gets them)" : "",
                  plain(here.low()), plain(here.high()), plain(there.low()), plain(there.high()),
                  findings::counted(int64_t(numbers), "feature"), with_commas(int64_t(shifted)),
                  shifted == 1 ? "s" : "", gap_words(look, gap)));
  finding.level = std::max(finding.level, findings::Level::kMinor);
  finding.numbers = {{"gap", gap}};
  finding.value = most;
  look.found.add(std::move(finding));
  return true;
}

struct Drift {
  std::string name, brief;
  std::string group;  ///< `camera=B`: without its inputs there is none
  double distance = 0, gain = 0;
  bool of_words = false;
};

/// Values that are equal in the source may differ in the last digits where each part was brought back to units by
/// itself.
double distance_of(const Column& here, const Column& there) {
  stats::Moments usual;
  for (float value : there.numbers)
    if (std::isfinite(value)) usual.add(value);
  const double spread = std::isfinite(usual.deviation()) ? usual.deviation() : 0;
  return census::ks_distance(here.numbers, there.numbers, float(kSameValue * spread));
}

/// The distance of two columns beyond what chance gives at these sizes.
std::optional<Drift> drift_of(const DataLook& look, const Column& here, const Column& there) {
  if (here.is_words() != there.is_words()) return {};
  const double n = double(here.is_words() ? here.codes.size() : here.numbers.size()),
               m = double(there.is_words() ? there.codes.size() : there.numbers.size());
  if (n < 50 || m < 50) return {};
  Drift drift{here.name, "", "", 0, 0, here.is_words()};
  const double chance = 1.63 * std::sqrt((n + m) / (n * m));
  if (here.is_words()) {
    std::vector<std::string> words = there.words;
    for (const std::string& word : here.words)
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    std::vector<int64_t> tests = word_counts(here, words), trains = word_counts(there, words);
    drift.distance = census::shares_distance(tests, trains);
    if (drift.distance < kDrift + chance || census::shares_p(tests, trains) > 0.001) return {};
    drift.brief = fmt::format("total variation distance of the shares is {:.0f} points", 100 * drift.distance);
  } else {
    drift.distance = distance_of(here, there);
    if (drift.distance < kDrift + chance) return {};
    drift.brief = fmt::format("KS distance is {:.2f}; the median is {} in tests, {} in training data", drift.distance,
                              plain(census::quantile(here.numbers, 0.5)), plain(census::quantile(there.numbers, 0.5)));
  }
  drift.gain = gain_if_spread_alike(look.test, here, there);
  if (drift.distance >= kApart) drift.gain = std::max(drift.gain, gap_to_training(look));
  return drift;
}

/// How far each row is from the middle of the training data, over all columns of numbers: what a little noise in each
/// of them adds up to.
std::optional<std::pair<Column, Column>> all_columns(const std::vector<Column>& tests,
                                                     const std::vector<Column>& trains) {
  std::pair<Column, Column> both;
  size_t used = 0;
  for (const Column& here : tests) {
    if (here.is_words() || here.aside || here.property) continue;
    auto there = std::find_if(trains.begin(), trains.end(), [&](const Column& c) { return c.name == here.name; });
    if (there == trains.end() || there->is_words() || there->aside) continue;
    stats::Moments usual;
    for (float value : there->numbers)
      if (std::isfinite(value)) usual.add(value);
    if (!(usual.deviation() > 0)) continue;
    ++used;
    auto add = [&](Column& to, const std::vector<float>& values) {
      to.numbers.resize(values.size(), 0);
      for (size_t i = 0; i < values.size(); ++i) {
        const double apart = std::isfinite(values[i]) ? (values[i] - usual.mean()) / usual.deviation() : 0;
        to.numbers[i] += float(std::min(apart * apart, kFarOut));
      }
    };
    add(both.first, here.numbers), add(both.second, there->numbers);
  }
  if (used < kFewestTogether) return {};
  both.first.name = both.second.name = "all columns";
  return both;
}

/// The group that all of a column's drift comes from, if there is one.
std::string confined_to(const std::vector<Column>& tests, const Column& here, const Column& there) {
  if (here.is_words()) return "";
  for (const Column& groups : tests) {
    if (!groups.aside || !groups.is_words() || groups.codes.size() != here.numbers.size() ||
        groups.words.size() > kMostGroups)
      continue;
    for (size_t w = 0; w < groups.words.size(); ++w) {
      std::vector<float> rest;
      for (size_t i = 0; i < here.numbers.size(); ++i)
        if (groups.codes[i] != int32_t(w)) rest.push_back(here.numbers[i]);
      const double n = double(rest.size()), m = double(there.numbers.size());
      if (2 * rest.size() < here.numbers.size() || rest.size() == here.numbers.size() || n < 50) continue;
      if (census::ks_distance(rest, there.numbers) < kDrift / 2 + 1.63 * std::sqrt((n + m) / (n * m)))
        return groups.name + "=" + groups.words[w];
    }
  }
  return "";
}

void look_for_drift(DataLook& look, bool range_shifted) {
  const std::vector<int64_t> of_tests = all_of(look.test), of_trains = all_of(*look.train);
  const auto [tests, trains] = slices::columns_of_both({*look.test.part->data, *look.test.census, of_tests},
                                                       {*look.train->part->data, *look.train->census, of_trains});
  std::vector<Drift> found;
  int64_t compared = 0;
  double nearest = 0;
  for (const Column& here : tests) {
    if (here.name == "unknown") continue;  // the vocabulary is made from training data: unknown-tokens looks at it
    auto there = std::find_if(trains.begin(), trains.end(), [&](const Column& c) { return c.name == here.name; });
    if (there == trains.end()) continue;
    ++compared;
    if (auto drift = drift_of(look, here, *there)) {
      drift->group = confined_to(tests, here, *there);
      found.push_back(std::move(*drift));
    } else if (!here.is_words() && !there->is_words())
      nearest = std::max(nearest, distance_of(here, *there));
  }
  if (const auto together = all_columns(tests, trains))
    if (auto drift = drift_of(look, together->first, together->second);
        drift && drift->distance >= kApart &&
        std::none_of(found.begin(), found.end(), [&](const Drift& one) { return one.distance >= drift->distance; })) {
      drift->brief = fmt::format("KS distance between distances from the training mean is {:.2f}", drift->distance);
      drift->group = confined_to(tests, together->first, together->second);
      found.push_back(std::move(*drift));
    }
  std::stable_sort(found.begin(), found.end(), [](const Drift& a, const Drift& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.distance > b.distance;
  });
  if (found.empty() && compared > 0)
    return look.pass("drift, training against tests", fmt::format("{} compared, largest distance {:.2f}",
                                                                  findings::counted(compared, "column"), nearest));
  if (range_shifted) {  // the same thing in other words
    findings::Finding& range = look.found.findings.back();
    for (const Drift& drift : found) range.related.push_back("drift:" + drift.name);
    const bool one_group = std::all_of(found.begin(), found.end(), [&](const Drift& drift) {
      return !drift.group.empty() && drift.group == found[0].group;
    });
    if (!found.empty() && one_group)
      range.numbers["group"] = found[0].group, range.evidence += " Without " + found[0].group + ", no column drifts.";
    return;
  }
  for (size_t i = 0; i < std::min(found.size(), kMostDrifts); ++i) {
    const Drift& drift = found[i];
    findings::Words words = look.words(look.test);
    words["name"] = drift.name;
    auto finding = findings::make(
        "drift", drift.name, words, {drift.gain, 0}, Certainty::kLikely, drift.brief,
        fmt::format(
            "The {} (a distance of {}). {}{}", drift.brief,
            drift.of_words ? "0 points means equal shares, 100 points no overlap"
                           : "0 means equal distributions, 1 no overlap",
            drift.gain < 0.0005 ? "It has no measurable cost." : "It may cost " + look.amount_text(drift.gain) + ".",
            drift.group.empty() ? "" : " Without " + drift.group + ", hardly any drift is left."));
    finding.numbers = {{"gap", gap_to_training(look)}};
    if (!drift.group.empty()) finding.numbers["group"] = drift.group;
    finding.value = drift.distance;
    look.found.add(std::move(finding));
  }
}

void look_for_leak(DataLook& look) {
  const Side& side = look.train ? *look.train : look.test;
  const auto classes = int64_t(look.classes.size());
  if (classes < 2 || classes > 100 || side.inputs() < 200) return;
  double best = 0;
  bool leaks = false;
  for (const Column& column : columns_of(side)) {
    std::vector<float> values = column.numbers;
    if (column.is_words()) values.assign(column.codes.begin(), column.codes.end());
    census::LeakageScore told = census::leakage_score(values, side.census->labels, classes, column.is_words());
    best = std::max(best, told.right);
    if (told.right < 0.95 || 1 - told.right > 0.1 * (1 - told.common)) continue;
    findings::Words words = look.words(side);
    words["name"] = column.name;
    const std::string right = findings::percent(told.right), common = findings::percent(told.common);
    std::string brief = fmt::format("accuracy {} from this column alone, majority class {}", right, common);
    auto finding =
        findings::make("label-leak", column.name, words, {}, Certainty::kLikely, brief,
                       fmt::format("A predictor that sees only {}, fitted on every second {} input, has accuracy {} on "
                                   "the others; the majority-class baseline has {}.",
                                   column.name, side.words(), right, common));
    finding.value = told.right;
    look.found.add(std::move(finding));
    leaks = true;
  }
  if (!leaks) look.pass("highest feature–label leakage score", findings::percent(best));
}

}  // namespace

void check_label_leak(Observed& seen, Results& out) {
  DataLook look(seen, out);
  look_for_leak(look);
}

void check_drift(Observed& seen, Results& out) {
  DataLook look(seen, out);
  if (look.train->census->form().content != look.test.census->form().content) return;
  // Splits that are prepared differently are stored differently: their raw values say nothing about drift.
  if (dataset::options_of(look.test.part->data->info().preprocess) !=
      dataset::options_of(look.train->part->data->info().preprocess))
    return out.skip("drift and ranges, training against tests", "the same preprocessing for both");
  look_for_drift(look, look_at_range(look));
}

}  // namespace netmend::checks
