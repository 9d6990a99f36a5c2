// Every criterion against a slow twin written from its definition, and the properties that all of them have.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/combinations.h"
#include "observers/coverage/layer_spread.h"
#include "observers/coverage/neuron_coverage.h"
#include "observers/coverage/peaks.h"
#include "observers/coverage/sections.h"
#include "observers/coverage/sign_pairs.h"
#include "observers/coverage/top_units.h"
#include "observers/coverage/traces.h"

namespace netmend::observers {
namespace {

const std::vector<int64_t> kUnits = {5, 70, 8};

RangesPtr ranges_of(const UnitSpace& space, const UnitBatch& batch) {
  std::vector<UnitRange> ranges(size_t(space.units()));
  for (int64_t u = 0; u < space.units(); ++u) {
    UnitRange& range = ranges[size_t(u)];
    double sum = 0, squares = 0;
    range.low = INFINITY, range.high = -INFINITY;
    for (int64_t row = 0; row < batch.count(); ++row) {
      const double value = batch.input(row)[u];
      range.low = std::min(range.low, value), range.high = std::max(range.high, value);
      sum += value, squares += value * value;
    }
    range.seen = batch.count();
    range.mean = sum / double(batch.count());
    range.squares = squares - sum * range.mean;
  }
  return std::make_shared<std::vector<UnitRange>>(ranges);
}

struct Case {
  std::string name;
  std::shared_ptr<const Criterion> criterion;
  std::function<double(const UnitBatch&)> twin;  ///< what is covered
  bool counts = true;                            ///< the order of inputs changes no bit
  bool monotone = true;
};

SpacePtr space() {
  static const SpacePtr made = made_up_space(kUnits);
  return made;
}
const UnitBatch& training() {
  static const UnitBatch made = [] {
    UnitBatch batch = random_values(*space(), 400, 1);
    for (int64_t row = 0; row < 400; ++row) batch.input(row)[6] = 0.5f;  // a constant unit
    return batch;
  }();
  return made;
}
RangesPtr ranges() {
  static const RangesPtr made = ranges_of(*space(), training());
  return made;
}

double neuron_twin(const UnitBatch& batch, double threshold) {
  std::set<int64_t> covered;
  for (int64_t row = 0; row < batch.count(); ++row)
    for (int64_t u = 0; u < batch.units; ++u) {
      const size_t at = size_t(row * batch.layers) + space()->layer_of(u);
      const double low = batch.low[at], high = batch.high[at];
      if (high > low && (double(batch.input(row)[u]) - low) / (high - low) > threshold) covered.insert(u);
    }
  return double(covered.size());
}

double section_twin(const UnitBatch& batch, int64_t k) {
  std::set<std::pair<int64_t, int64_t>> covered;
  for (int64_t row = 0; row < batch.count(); ++row)
    for (int64_t u = 0; u < batch.units; ++u) {
      const UnitRange& range = (*ranges())[size_t(u)];
      const double value = batch.input(row)[u], width = range.high - range.low;
      if (width == 0 || value < range.low || value > range.high) continue;
      // Looked for, not computed: the last section whose lower edge is not above the value.
      int64_t section = 0;
      while (section + 1 < k && double(section + 1) / double(k) <= (value - range.low) / width) ++section;
      covered.insert({u, section});
    }
  return double(covered.size());
}

double corner_twin(const UnitBatch& batch, bool both) {
  std::set<std::pair<int64_t, int>> covered;
  for (int64_t row = 0; row < batch.count(); ++row)
    for (int64_t u = 0; u < batch.units; ++u) {
      if (double(batch.input(row)[u]) > (*ranges())[size_t(u)].high) covered.insert({u, 1});
      if (both && double(batch.input(row)[u]) < (*ranges())[size_t(u)].low) covered.insert({u, 0});
    }
  return double(covered.size());
}

std::vector<std::vector<int64_t>> top_twin(const UnitBatch& batch, int64_t row, int64_t k) {
  std::vector<std::vector<int64_t>> tops;
  for (size_t l = 0; l < kUnits.size(); ++l) {
    std::vector<int64_t> order = range_of(space()->first(l), space()->first(l + 1));
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return batch.input(row)[a] > batch.input(row)[b]; });
    order.resize(std::min(order.size(), size_t(k)));
    tops.push_back(order);
  }
  return tops;
}

double top_units_twin(const UnitBatch& batch, int64_t k) {
  std::set<int64_t> covered;
  for (int64_t row = 0; row < batch.count(); ++row)
    for (const auto& layer : top_twin(batch, row, k)) covered.insert(layer.begin(), layer.end());
  return double(covered.size());
}

double top_patterns_twin(const UnitBatch& batch, int64_t k, bool ordered) {
  std::set<std::vector<std::vector<int64_t>>> patterns;
  for (int64_t row = 0; row < batch.count(); ++row) {
    auto tops = top_twin(batch, row, k);
    for (auto& layer : tops)
      if (!ordered) std::sort(layer.begin(), layer.end());
    patterns.insert(tops);
  }
  return double(patterns.size());
}

/// By the definition: every two inputs, every pair of units.
double sign_twin(const UnitBatch& batch) {
  std::set<std::pair<int64_t, int64_t>> covered;
  auto sign = [&](int64_t row, int64_t u) { return batch.input(row)[u] > 0; };
  for (int64_t a = 0; a < batch.count(); ++a)
    for (int64_t b = 0; b < a; ++b)
      for (size_t l = 0; l + 1 < kUnits.size(); ++l) {
        std::vector<int64_t> flipped;
        for (int64_t u = space()->first(l); u < space()->first(l + 1); ++u)
          if (sign(a, u) != sign(b, u)) flipped.push_back(u);
        if (flipped.size() != 1) continue;
        for (int64_t u = space()->first(l + 1); u < space()->first(l + 2); ++u)
          if (sign(a, u) != sign(b, u)) covered.insert({flipped[0], u});
      }
  return double(covered.size());
}

double spread_twin(const UnitBatch& batch) {
  if (batch.count() == 0) return 0;
  double total = 0;
  for (size_t l = 0; l < kUnits.size(); ++l) {
    const int64_t first = space()->first(l), end = space()->first(l + 1);
    double sum = 0;
    for (int64_t i = first; i < end; ++i)
      for (int64_t j = first; j < end; ++j) {
        double a = 0, b = 0, ab = 0;
        for (int64_t row = 0; row < batch.count(); ++row) {
          const double x = batch.input(row)[i], y = batch.input(row)[j];
          a += x, b += y, ab += x * y;
        }
        const auto n = double(batch.count());
        sum += std::abs(ab / n - a / n * b / n);
      }
    total += sum / double((end - first) * (end - first));
  }
  return total;
}

std::vector<QuantisedUnit> important_units() {
  std::vector<QuantisedUnit> units;
  for (int64_t u : {3, 0, 7, 12}) {
    std::vector<float> values;
    for (int64_t row = 0; row < training().count(); ++row)
      values.push_back(training().input(row)[space()->first(1) + u]);
    units.push_back(quantise(u, values));
  }
  return units;
}

double combination_twin(const UnitBatch& batch) {
  const auto units = important_units();
  std::set<std::vector<double>> seen;
  for (int64_t row = 0; row < batch.count(); ++row) {
    std::vector<double> combination;
    for (const QuantisedUnit& unit : units) {
      const double value = batch.input(row)[space()->first(1) + unit.unit];
      combination.push_back(
          *std::min_element(unit.clusters.centroids.begin(), unit.clusters.centroids.end(),
                            [&](double a, double b) { return std::abs(a - value) < std::abs(b - value); }));
    }
    seen.insert(combination);
  }
  return double(seen.size());
}

template <typename T>
std::shared_ptr<const Criterion> make(T criterion) {
  return std::make_shared<T>(std::move(criterion));
}

std::vector<Case> cases() {
  return {
      {"NC", make(NeuronCoverage(space(), 0.75)), [](const UnitBatch& b) { return neuron_twin(b, 0.75); }},
      {"NC_low", make(NeuronCoverage(space(), 0.2)), [](const UnitBatch& b) { return neuron_twin(b, 0.2); }},
      {"KMNC", make(SectionCoverage(space(), ranges(), 1000)),
       [](const UnitBatch& b) { return section_twin(b, 1000); }},
      {"KMNC_7", make(SectionCoverage(space(), ranges(), 7)), [](const UnitBatch& b) { return section_twin(b, 7); }},
      {"NBC", make(CornerCoverage(space(), ranges(), true)), [](const UnitBatch& b) { return corner_twin(b, true); }},
      {"SNAC", make(CornerCoverage(space(), ranges(), false)),
       [](const UnitBatch& b) { return corner_twin(b, false); }},
      {"TKNC", make(TopUnits(space(), 3)), [](const UnitBatch& b) { return top_units_twin(b, 3); }},
      {"TKNC_9", make(TopUnits(space(), 9)), [](const UnitBatch& b) { return top_units_twin(b, 9); }},
      {"TKNP", make(TopPatterns(space(), 1)), [](const UnitBatch& b) { return top_patterns_twin(b, 1, false); }},
      {"TKNP_nlc", make(TopPatterns(space(), 2, Published::kNlc)),
       [](const UnitBatch& b) { return top_patterns_twin(b, 2, true); }},
      {"MCDC", make(SignPairs(space())), sign_twin},
      {"NLC", make(LayerSpread(space())), spread_twin, false, false},
      {"IDC", make(ImportanceCoverage(space(), 1, important_units())), combination_twin},
  };
}

class EveryCriterion : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { one = cases()[GetParam()]; }
  double covered(const UnitBatch& batch) const {
    return one.criterion->figure(*tally_of(*one.criterion, batch)).covered;
  }
  Case one;
};

TEST_P(EveryCriterion, EqualsItsSlowTwin) {
  for (uint64_t seed : {11, 12, 13})
    for (bool rectified : {true, false}) {
      UnitBatch batch = random_values(*space(), 90, seed, rectified);
      EXPECT_NEAR(covered(batch), one.twin(batch), one.counts ? 0 : 1e-9) << seed;
    }
}

TEST_P(EveryCriterion, IsNothingWithoutInputsAndNeverNan) {
  Figure nothing = one.criterion->figure(*one.criterion->fresh());
  EXPECT_EQ(nothing.covered, 0);
  EXPECT_EQ(nothing.value, 0);
  UnitBatch broken = random_values(*space(), 5, 3);
  for (float& value : broken.values) value = NAN;
  for (float& value : broken.low) value = INFINITY;
  for (float& value : broken.high) value = -INFINITY;
  Figure figure = one.criterion->figure(*tally_of(*one.criterion, broken));
  EXPECT_EQ(figure.covered, 0);
  EXPECT_TRUE(std::isfinite(figure.value));
  broken = random_values(*space(), 50, 3);
  broken.input(3)[2] = NAN, broken.input(4)[40] = INFINITY, broken.input(5)[80] = -INFINITY;
  EXPECT_TRUE(std::isfinite(one.criterion->figure(*tally_of(*one.criterion, broken)).value));
}

TEST_P(EveryCriterion, NeverFallsWhenInputsAreAdded) {
  if (!one.monotone) GTEST_SKIP() << "a spread may fall";
  UnitBatch all = random_values(*space(), 60, 21);
  double before = 0;
  for (int64_t count = 1; count <= 60; count += 7) {
    const double now = covered(rows_of(all, range_of(0, count)));
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST_P(EveryCriterion, OrderBatchesAndPartsDoNotMatter) {
  UnitBatch all = random_values(*space(), 150, 31);
  auto whole = tally_of(*one.criterion, all);
  std::vector<int64_t> order = range_of(0, 150);
  Random(5).shuffle(order);
  EXPECT_NEAR(covered(rows_of(all, order)), one.criterion->figure(*whole).covered, one.counts ? 0 : 1e-9);
  for (int64_t size : {1, 7, 64}) {
    auto batched = one.criterion->fresh(), merged = one.criterion->fresh();
    for (int64_t first = 0; first < 150; first += size) {
      UnitBatch part = rows_of(all, range_of(first, std::min<int64_t>(150, first + size)));
      batched->add(part);
      merged->merge(*tally_of(*one.criterion, part));
    }
    for (const Tally* tally : {batched.get(), merged.get()}) {
      EXPECT_NEAR(one.criterion->figure(*tally).value, one.criterion->figure(*whole).value, one.counts ? 0 : 1e-9);
      if (one.counts) {
        EXPECT_EQ(bytes_of(*tally), bytes_of(*whole)) << size;
      }
    }
  }
}

TEST_P(EveryCriterion, SurvivesSavingAndRefusesDamage) {
  auto tally = tally_of(*one.criterion, random_values(*space(), 40, 41));
  const std::string saved = bytes_of(*tally);
  auto again = one.criterion->fresh();
  std::istringstream in(saved);
  again->load(in);
  EXPECT_EQ(bytes_of(*again), saved);
  Random random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::string damaged = saved.substr(0, trial % 2 ? saved.size() : random.below(saved.size()));
    if (!damaged.empty())
      for (int flips = 0; flips < 3; ++flips) damaged[random.below(damaged.size())] = char(random.below(256));
    std::istringstream stream(damaged);
    try {
      auto other = one.criterion->fresh();
      other->load(stream);
      one.criterion->figure(*other);
    } catch (const InputError&) {
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Criteria, EveryCriterion, testing::Range<size_t>(0, cases().size()),
                         [](const auto& info) { return cases()[info.param].name; });

/// One unit, one value an input.
UnitBatch line(std::vector<float> values) {
  UnitBatch batch{1, 1};
  for (float value : values) {
    batch.rows.push_back({int64_t(batch.rows.size())});
    batch.values.push_back(value);
    batch.low.push_back(0), batch.high.push_back(1);
  }
  return batch;
}

TEST(Sections, EdgesBelongWhereTheyShould) {
  SpacePtr one = made_up_space({1});
  auto range = std::make_shared<std::vector<UnitRange>>(1, UnitRange{0, 1, 0.5, 1, 9});
  auto covered = [&](std::vector<float> values, Published published) {
    SectionCoverage criterion(one, range, 4, published);
    return criterion.figure(*tally_of(criterion, line(std::move(values)))).covered;
  };
  EXPECT_EQ(covered({0}, Published::kCorrected), 1);
  EXPECT_EQ(covered({1}, Published::kCorrected), 1);
  EXPECT_EQ(covered({0, 0.24f, 0.25f}, Published::kCorrected), 2);
  EXPECT_EQ(covered({-0.1f, 1.1f}, Published::kCorrected), 0);
  EXPECT_EQ(covered({-0.1f, 1.1f}, Published::kDeepImportance), 2);
  EXPECT_EQ(covered({0}, Published::kNlc), 0);
  EXPECT_EQ(covered({1}, Published::kNlc), 1);
  EXPECT_EQ(covered({1}, Published::kDnnTip), 0);
  EXPECT_EQ(covered({-9, 9, 0.1f, 0.2f}, Published::kDeepGini), 3);
  auto beyond = [&](std::vector<float> values, Published published) {
    CornerCoverage criterion(one, range, true, 0, published);
    return criterion.figure(*tally_of(criterion, line(std::move(values)))).covered;
  };
  EXPECT_EQ(beyond({0, 1}, Published::kCorrected), 0);
  EXPECT_EQ(beyond({0, 1}, Published::kDnnTip), 2);
  EXPECT_EQ(beyond({-0.01f, 1.01f}, Published::kCorrected), 2);
}

TEST(Sections, ConstantUnitsDoNotCountAndAreTold) {
  SpacePtr one = made_up_space({1});
  auto constant = std::make_shared<std::vector<UnitRange>>(1, UnitRange{2, 2, 2, 0, 9});
  SectionCoverage criterion(one, constant, 10);
  Figure figure = criterion.figure(*tally_of(criterion, line({2, 3})));
  EXPECT_EQ(figure.total, 0);
  EXPECT_EQ(figure.value, 0);
  EXPECT_EQ(figure.notes.size(), 1u);
  SectionCoverage published(one, constant, 10, Published::kDeepImportance);
  EXPECT_EQ(published.figure(*tally_of(published, line({2}))).covered, 1);
  SectionCoverage nlc(one, constant, 10, Published::kNlc);
  EXPECT_EQ(nlc.figure(*tally_of(nlc, line({2}))).total, 10);
}

TEST(NeuronCoverage, AsPublished) {
  SpacePtr two = made_up_space({2});
  UnitBatch batch{2, 1};
  batch.rows.resize(1);
  batch.values = {0.4f, 0.8f};
  batch.low = {0}, batch.high = {2};
  auto covered = [&](double threshold, Published published) {
    NeuronCoverage criterion(two, threshold, published);
    return criterion.figure(*tally_of(criterion, batch)).covered;
  };
  EXPECT_EQ(covered(0.3, Published::kCorrected), 1);  // 0.2 and 0.4 of the elements' range
  EXPECT_EQ(covered(0.5, Published::kNlc), 1);        // 0 and 1 of the means' range
  EXPECT_EQ(covered(0.3, Published::kDnnTip), 2);
  EXPECT_EQ(covered(0.65, Published::kDeepGini), 1);  // logistic: 0.599 and 0.690
  batch.values = {0.5f, 0.5f}, batch.low = batch.high = {0.5f};
  EXPECT_EQ(covered(0, Published::kCorrected), 0);  // all one value
}

TEST(SignPairs, AsPublishedCountsEqualNumbersOnce) {
  SpacePtr three = made_up_space({1, 1, 1});
  UnitBatch batch{3, 3};
  batch.rows.resize(2);
  batch.values = {0, 0, 0, 1, 1, 1};
  batch.low.resize(6), batch.high.resize(6);
  SignPairs right(three), published(three, Published::kDeepImportance);
  EXPECT_EQ(right.figure(*tally_of(right, batch)).covered, 2);
  EXPECT_EQ(published.figure(*tally_of(published, batch)).covered, 1);
}

TEST(SignPairs, EqualTheirTwinWherePatternsAreWideAndNear) {
  UnitBatch batch = random_values(*space(), 80, 91, false);
  Random random(2);
  for (int64_t row = 4; row < 80; ++row) {  // four patterns of 75 signs, mostly with one of them flipped
    std::copy_n(batch.input(row % 4), 75, batch.input(row));
    float& flipped = batch.input(row)[random.below(75)];
    flipped = -flipped;
  }
  SignPairs criterion(space());
  const double covered = criterion.figure(*tally_of(criterion, batch)).covered;
  EXPECT_EQ(covered, sign_twin(batch));
  EXPECT_GT(criterion.figure(*tally_of(criterion, batch)).layers[1].covered, 30);
}

TEST(TopPatterns, OrderCountsOnlyAsPublished) {
  SpacePtr two = made_up_space({2});
  UnitBatch batch{2, 1};
  batch.rows.resize(2);
  batch.values = {1, 2, 2, 1};
  batch.low = {0, 0}, batch.high = {2, 2};
  for (auto [published, patterns] :
       {std::pair(Published::kCorrected, 1), std::pair(Published::kNlc, 2), std::pair(Published::kDeepImportance, 2)}) {
    TopPatterns criterion(two, 2, published);
    EXPECT_EQ(criterion.figure(*tally_of(criterion, batch)).covered, patterns);
  }
}

TEST(Ranges, EqualASlowTwin) {
  UnitBatch batch = random_values(*space(), 300, 51, false);
  Ranges criterion(space());
  auto whole = tally_of(criterion, batch), parts = criterion.fresh();
  for (int64_t first = 0; first < 300; first += 37)
    parts->merge(*tally_of(criterion, rows_of(batch, range_of(first, std::min<int64_t>(300, first + 37)))));
  RangesPtr twin = ranges_of(*space(), batch);
  for (const Tally* tally : {whole.get(), parts.get()})
    for (size_t u = 0; u < twin->size(); ++u) {
      const UnitRange& range = dynamic_cast<const RangeTally&>(*tally).ranges[u];
      EXPECT_EQ(range.low, (*twin)[u].low);
      EXPECT_EQ(range.high, (*twin)[u].high);
      EXPECT_NEAR(range.mean, (*twin)[u].mean, 1e-9);
      EXPECT_NEAR(range.deviation(), (*twin)[u].deviation(), 1e-9);
    }
  batch.input(7)[3] = NAN;
  const UnitRange& range = dynamic_cast<const RangeTally&>(*tally_of(criterion, batch)).ranges[3];
  EXPECT_EQ(range.seen, 299);
  EXPECT_TRUE(std::isfinite(range.mean));
}

TEST(Peaks, AreTheHighestWhateverTheGrouping) {
  UnitBatch batch = random_values(*space(), 500, 61);
  for (float& value : batch.values) value = std::round(value * 4);  // many are equal
  Peaks criterion(space());
  auto whole = tally_of(criterion, batch);
  for (int64_t size : {1, 50, 333}) {
    auto parts = criterion.fresh();
    for (int64_t first = 0; first < 500; first += size)
      parts->merge(*tally_of(criterion, rows_of(batch, range_of(first, std::min<int64_t>(500, first + size)))));
    EXPECT_EQ(bytes_of(*parts), bytes_of(*whole));
  }
  const auto& peaks = dynamic_cast<const PeakTally&>(*whole);
  for (int64_t u = 0; u < space()->units(); ++u) {
    std::vector<int64_t> order = range_of(0, 500);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return batch.input(a)[u] > batch.input(b)[u]; });
    for (int64_t n = 0; n < Peaks::kKept; ++n) EXPECT_EQ(peaks.sample(u, n), order[size_t(n)]);
  }
}

TEST(Peaks, LowUnitsAreThoseThatManyTrainingInputsDriveHigher) {
  SpacePtr two = made_up_space({2});
  UnitBatch batch = random_values(*two, 1000, 71, false);
  Peaks criterion(two);
  auto peaks = tally_of(criterion, batch);
  const auto& known = dynamic_cast<const PeakTally&>(*peaks);
  bool judged = false;
  // 500 tests: 14 training inputs above them all are more than chance.
  auto low = find_low_units(known, 1000, {known.value(0, 14) - 1e-6, known.value(1, 10)}, 500, judged);
  EXPECT_TRUE(judged);
  ASSERT_EQ(low.size(), 1u);
  EXPECT_EQ(low[0].unit, 0);
  EXPECT_EQ(low[0].higher, 15);
  EXPECT_EQ(low[0].samples.size(), 12u);
  find_low_units(known, 1000, {0, 0}, 20, judged);
  EXPECT_FALSE(judged);
  find_low_units(known, 1000, {0, 0}, 0, judged);
  EXPECT_FALSE(judged);
}

TEST(Traces, KeepWhatWasAskedFor) {
  UnitBatch batch = random_values(*space(), 20, 81);
  Traces middle(space(), 1, 2, 20, 3);
  auto tally = tally_of(middle, batch);
  const UnitBatch& kept = dynamic_cast<const TraceTally&>(*tally).kept;
  ASSERT_EQ(kept.count(), 7);
  EXPECT_EQ(kept.units, 70);
  for (int64_t row = 0; row < 7; ++row) {
    EXPECT_EQ(kept.rows[size_t(row)].sample, 3 * row);
    EXPECT_EQ(kept.input(row)[9], batch.input(3 * row)[5 + 9]);
    EXPECT_EQ(kept.high[size_t(row)], batch.high[size_t(9 * row + 1)]);
  }
}

TEST(Published, NamesAreSuggested) {
  EXPECT_EQ(parse_published("dnn-tip"), Published::kDnnTip);
  EXPECT_EQ(parse_published(""), Published::kCorrected);
  try {
    parse_published("salad");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.hint()).find("deepgini"), std::string::npos);
  }
}

}  // namespace
}  // namespace netmend::observers
