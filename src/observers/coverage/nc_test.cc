#include "observers/coverage/nc.h"

#include <gtest/gtest.h>

#include <set>

#include "observers/coverage/batches_for_test.h"

namespace netmend::observers {
namespace {

double neuron_twin(const UnitBatch& batch, double threshold) {
  std::set<int64_t> covered;
  for (int64_t row = 0; row < batch.count(); ++row)
    for (int64_t u = 0; u < batch.units; ++u) {
      const size_t at = size_t(row * batch.layers) + test_space()->layer_of(u);
      const double low = batch.low[at], high = batch.high[at];
      if (high > low && (double(batch.input(row)[u]) - low) / (high - low) > threshold) covered.insert(u);
    }
  return double(covered.size());
}

TEST(Nc, EqualsASlowTwin) {
  for (double threshold : {0.75, 0.2})
    expect_twin(Nc(test_space(), threshold), [&](const UnitBatch& batch) { return neuron_twin(batch, threshold); });
}

TEST(Nc, AsPublished) {
  SpacePtr two = made_up_space({2});
  UnitBatch batch{2, 1};
  batch.rows.resize(1);
  batch.values = {0.4f, 0.8f};
  batch.low = {0}, batch.high = {2};
  auto covered = [&](double threshold, Published published) {
    Nc criterion(two, threshold, published);
    return criterion.figure(*tally_of(criterion, batch)).covered;
  };
  EXPECT_EQ(covered(0.3, Published::kCorrected), 1);  // 0.2 and 0.4 of the elements' range
  EXPECT_EQ(covered(0.5, Published::kNlc), 1);        // 0 and 1 of the means' range
  EXPECT_EQ(covered(0.3, Published::kDnnTip), 2);
  EXPECT_EQ(covered(0.65, Published::kDeepGini), 1);  // logistic: 0.599 and 0.690
  batch.values = {0.5f, 0.5f}, batch.low = batch.high = {0.5f};
  EXPECT_EQ(covered(0, Published::kCorrected), 0);  // all one value
}

}  // namespace
}  // namespace netmend::observers
