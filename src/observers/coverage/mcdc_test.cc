#include "observers/coverage/mcdc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "observers/coverage/batches_for_test.h"

namespace netmend::observers {
namespace {

/// By the definition: every two inputs, every pair of units.
double sign_twin(const UnitBatch& batch) {
  std::set<std::pair<int64_t, int64_t>> covered;
  auto sign = [&](int64_t row, int64_t u) { return batch.input(row)[u] > 0; };
  for (int64_t a = 0; a < batch.count(); ++a)
    for (int64_t b = 0; b < a; ++b)
      for (size_t l = 0; l + 1 < test_space()->layers().size(); ++l) {
        std::vector<int64_t> flipped;
        for (int64_t u = test_space()->first(l); u < test_space()->first(l + 1); ++u)
          if (sign(a, u) != sign(b, u)) flipped.push_back(u);
        if (flipped.size() != 1) continue;
        for (int64_t u = test_space()->first(l + 1); u < test_space()->first(l + 2); ++u)
          if (sign(a, u) != sign(b, u)) covered.insert({flipped[0], u});
      }
  return double(covered.size());
}

TEST(Mcdc, EqualsASlowTwin) { expect_twin(Mcdc(test_space()), sign_twin); }

TEST(Mcdc, AsPublishedCountsEqualNumbersOnce) {
  SpacePtr three = made_up_space({1, 1, 1});
  UnitBatch batch{3, 3};
  batch.rows.resize(2);
  batch.values = {0, 0, 0, 1, 1, 1};
  batch.low.resize(6), batch.high.resize(6);
  Mcdc right(three), published(three, Published::kDeepImportance);
  EXPECT_EQ(right.figure(*tally_of(right, batch)).covered, 2);
  EXPECT_EQ(published.figure(*tally_of(published, batch)).covered, 1);
}

TEST(Mcdc, EqualTheirTwinWherePatternsAreWideAndNear) {
  UnitBatch batch = random_values(*test_space(), 80, 91, false);
  Random random(2);
  for (int64_t row = 4; row < 80; ++row) {  // four patterns of 75 signs, mostly with one of them flipped
    std::copy_n(batch.input(row % 4), 75, batch.input(row));
    float& flipped = batch.input(row)[random.below(75)];
    flipped = -flipped;
  }
  Mcdc criterion(test_space());
  const double covered = criterion.figure(*tally_of(criterion, batch)).covered;
  EXPECT_EQ(covered, sign_twin(batch));
  EXPECT_GT(criterion.figure(*tally_of(criterion, batch)).layers[1].covered, 30);
}

}  // namespace
}  // namespace netmend::observers
