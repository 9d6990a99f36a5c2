#include "observers/coverage/kmnc.h"

#include <gtest/gtest.h>

#include <set>

#include "observers/coverage/batches_for_test.h"

namespace netmend::observers {
namespace {

double section_twin(const UnitBatch& batch, int64_t k) {
  std::set<std::pair<int64_t, int64_t>> covered;
  for (int64_t row = 0; row < batch.count(); ++row)
    for (int64_t u = 0; u < batch.units; ++u) {
      const UnitRange& range = (*test_ranges())[size_t(u)];
      const double value = batch.input(row)[u], width = range.high - range.low;
      if (width == 0 || value < range.low || value > range.high) continue;
      // Looked for, not computed: the last section whose lower edge is not above the value.
      int64_t section = 0;
      while (section + 1 < k && double(section + 1) / double(k) <= (value - range.low) / width) ++section;
      covered.insert({u, section});
    }
  return double(covered.size());
}

TEST(Kmnc, EqualsASlowTwin) {
  for (int64_t sections : {1000, 7})
    expect_twin(Kmnc(test_space(), test_ranges(), sections),
                [&](const UnitBatch& batch) { return section_twin(batch, sections); });
}

TEST(Kmnc, EdgesBelongWhereTheyShould) {
  SpacePtr one = made_up_space({1});
  auto range = std::make_shared<std::vector<UnitRange>>(1, UnitRange{0, 1, 0.5, 1, 9});
  auto covered = [&](std::vector<float> values, Published published) {
    Kmnc criterion(one, range, 4, published);
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
}

TEST(Kmnc, ConstantUnitsDoNotCountAndAreTold) {
  SpacePtr one = made_up_space({1});
  auto constant = std::make_shared<std::vector<UnitRange>>(1, UnitRange{2, 2, 2, 0, 9});
  Kmnc criterion(one, constant, 10);
  Figure figure = criterion.figure(*tally_of(criterion, line({2, 3})));
  EXPECT_EQ(figure.total, 0);
  EXPECT_EQ(figure.value, 0);
  EXPECT_EQ(figure.notes.size(), 1u);
  Kmnc published(one, constant, 10, Published::kDeepImportance);
  EXPECT_EQ(published.figure(*tally_of(published, line({2}))).covered, 1);
  Kmnc nlc(one, constant, 10, Published::kNlc);
  EXPECT_EQ(nlc.figure(*tally_of(nlc, line({2}))).total, 10);
}

}  // namespace
}  // namespace netmend::observers
