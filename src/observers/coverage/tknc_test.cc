// TKNC and TKNP: both are about the largest units of a layer.
#include "observers/coverage/tknc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/tknp.h"

namespace netmend::observers {
namespace {

std::vector<std::vector<int64_t>> top_twin(const UnitBatch& batch, int64_t row, int64_t k) {
  std::vector<std::vector<int64_t>> tops;
  for (size_t l = 0; l < test_space()->layers().size(); ++l) {
    std::vector<int64_t> order = range_of(test_space()->first(l), test_space()->first(l + 1));
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

TEST(Tknc, EqualsASlowTwin) {
  for (int64_t k : {3, 9})
    expect_twin(Tknc(test_space(), k), [&](const UnitBatch& batch) { return top_units_twin(batch, k); });
}

TEST(Tknp, EqualsASlowTwin) {
  expect_twin(Tknp(test_space(), 1), [](const UnitBatch& batch) { return top_patterns_twin(batch, 1, false); });
  expect_twin(Tknp(test_space(), 2, Published::kNlc),
              [](const UnitBatch& batch) { return top_patterns_twin(batch, 2, true); });
}

TEST(Tknp, OrderCountsOnlyAsPublished) {
  SpacePtr two = made_up_space({2});
  UnitBatch batch{2, 1};
  batch.rows.resize(2);
  batch.values = {1, 2, 2, 1};
  batch.low = {0, 0}, batch.high = {2, 2};
  for (auto [published, patterns] :
       {std::pair(Published::kCorrected, 1), std::pair(Published::kNlc, 2), std::pair(Published::kDeepImportance, 2)}) {
    Tknp criterion(two, 2, published);
    EXPECT_EQ(criterion.figure(*tally_of(criterion, batch)).covered, patterns);
  }
}

}  // namespace
}  // namespace netmend::observers
