#include "observers/coverage/nbc_snac.h"

#include <gtest/gtest.h>

#include <set>

#include "observers/coverage/batches_for_test.h"

namespace netmend::observers {
namespace {

double corner_twin(const UnitBatch& batch, bool both) {
  std::set<std::pair<int64_t, int>> covered;
  for (int64_t row = 0; row < batch.count(); ++row)
    for (int64_t u = 0; u < batch.units; ++u) {
      if (double(batch.input(row)[u]) > (*test_ranges())[size_t(u)].high) covered.insert({u, 1});
      if (both && double(batch.input(row)[u]) < (*test_ranges())[size_t(u)].low) covered.insert({u, 0});
    }
  return double(covered.size());
}

TEST(NbcSnac, EqualSlowTwins) {
  expect_twin(Nbc(test_space(), test_ranges()), [](const UnitBatch& batch) { return corner_twin(batch, true); });
  expect_twin(Snac(test_space(), test_ranges()), [](const UnitBatch& batch) { return corner_twin(batch, false); });
}

TEST(NbcSnac, CornersBeginBeyondTheRange) {
  SpacePtr one = made_up_space({1});
  auto range = std::make_shared<std::vector<UnitRange>>(1, UnitRange{0, 1, 0.5, 1, 9});
  auto beyond = [&](std::vector<float> values, Published published) {
    Nbc criterion(one, range, 0, published);
    return criterion.figure(*tally_of(criterion, line(std::move(values)))).covered;
  };
  EXPECT_EQ(beyond({0, 1}, Published::kCorrected), 0);
  EXPECT_EQ(beyond({0, 1}, Published::kDnnTip), 2);
  EXPECT_EQ(beyond({-0.01f, 1.01f}, Published::kCorrected), 2);
}

}  // namespace
}  // namespace netmend::observers
