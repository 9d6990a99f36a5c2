#include "observers/coverage/mcdc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/mcdc_values.h"

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

/// By the definition: every two inputs, every pair of units, over given connections.
double value_twin(const UnitBatch& batch, const UnitSpace& space, McdcKind kind, float factor) {
  int64_t covered = 0;
  auto sign = [&](int64_t row, int64_t u) { return batch.input(row)[u] > 0; };
  auto changes = [&](int64_t a, int64_t b, int64_t u) {
    const float x = std::abs(batch.input(a)[u]), y = std::abs(batch.input(b)[u]);
    return std::max(x, y) > 0 && std::max(x, y) >= factor * std::min(x, y);
  };
  for (const auto& [lower, upper] : space.connections())
    for (int64_t i = space.first(lower); i < space.first(lower + 1); ++i)
      for (int64_t j = space.first(upper); j < space.first(upper + 1); ++j) {
        bool found = false;
        for (int64_t a = 0; a < batch.count() && !found; ++a)
          for (int64_t b = 0; b < a && !found; ++b) {
            bool others = true;
            for (int64_t u = space.first(lower); u < space.first(lower + 1); ++u)
              others = others && (u == i || sign(a, u) == sign(b, u));
            const bool flips = sign(a, i) != sign(b, i), above = sign(a, j) != sign(b, j);
            if (!others) continue;
            const bool below = kind == McdcKind::kSignValue ? flips : !flips && changes(a, b, i);
            found = below && (kind == McdcKind::kValueSign ? above : !above && changes(a, b, j));
          }
        covered += found;
      }
  return double(covered);
}

TEST(ValueMcdc, EqualsASlowTwinAlsoWhereLayersBranch) {
  std::vector<model::Layer> layers = made_up_space({3, 4, 6})->layers();
  const auto branched =
      std::make_shared<UnitSpace>(layers, UnitChoice(), std::vector<int64_t>(), UnitSpace::Connections{{0, 1}, {0, 2}});
  for (const SpacePtr& space : {made_up_space({3, 4, 6}), SpacePtr(branched)})
    for (McdcKind kind : {McdcKind::kValueSign, McdcKind::kSignValue, McdcKind::kValueValue})
      for (uint64_t seed : {1, 2, 3})
        for (bool rectified : {true, false}) {
          const UnitBatch batch = random_values(*space, seed == 1 ? 12 : 50, seed, rectified);
          const ValueMcdc criterion(space, kind, 2.5);
          const Figure found = criterion.figure(*tally_of(criterion, batch));
          EXPECT_EQ(found.covered, value_twin(batch, *space, kind, 2.5f)) << int(kind) << " " << seed << rectified;
          EXPECT_EQ(found.total, space == branched ? 12 + 18 : 12 + 24);
        }
}

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
