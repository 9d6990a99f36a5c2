// What a pass keeps for criteria: ranges, peaks and traces of units.
#include <gtest/gtest.h>

#include <algorithm>

#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/peaks.h"
#include "observers/coverage/ranges.h"
#include "observers/coverage/traces.h"

namespace netmend::observers {
namespace {

TEST(Ranges, EqualASlowTwin) {
  UnitBatch batch = random_values(*test_space(), 300, 51, false);
  Ranges criterion(test_space());
  auto whole = tally_of(criterion, batch), parts = criterion.fresh();
  for (int64_t first = 0; first < 300; first += 37)
    parts->merge(*tally_of(criterion, rows_of(batch, range_of(first, std::min<int64_t>(300, first + 37)))));
  RangesPtr twin = ranges_of(*test_space(), batch);
  for (const Tally* tally : {whole.get(), parts.get()})
    for (size_t u = 0; u < twin->size(); ++u) {
      const UnitRange& range = dynamic_cast<const RangeTally&>(*tally).ranges[u];
      EXPECT_EQ(range.low, (*twin)[u].low);
      EXPECT_EQ(range.high, (*twin)[u].high);
      EXPECT_NEAR(range.mean, (*twin)[u].mean, 1e-9);
      EXPECT_NEAR(range.deviation(), (*twin)[u].deviation(), 1e-9);
    }
  batch.input(7)[3] = NAN;
  const UnitRange range = dynamic_cast<const RangeTally&>(*tally_of(criterion, batch)).ranges[3];
  EXPECT_EQ(range.seen, 299);
  EXPECT_TRUE(std::isfinite(range.mean));
}

TEST(Peaks, AreTheHighestWhateverTheGrouping) {
  UnitBatch batch = random_values(*test_space(), 500, 61);
  for (float& value : batch.values) value = std::round(value * 4);  // many are equal
  Peaks criterion(test_space());
  auto whole = tally_of(criterion, batch);
  for (int64_t size : {1, 50, 333}) {
    auto parts = criterion.fresh();
    for (int64_t first = 0; first < 500; first += size)
      parts->merge(*tally_of(criterion, rows_of(batch, range_of(first, std::min<int64_t>(500, first + size)))));
    EXPECT_EQ(bytes_of(*parts), bytes_of(*whole));
  }
  const auto& peaks = dynamic_cast<const PeakTally&>(*whole);
  for (int64_t u = 0; u < test_space()->units(); ++u) {
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
  UnitBatch batch = random_values(*test_space(), 20, 81);
  Traces middle(test_space(), 1, 2, 20, 3);
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

}  // namespace
}  // namespace netmend::observers
