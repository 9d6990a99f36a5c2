#include "observers/coverage/nlc.h"

#include <gtest/gtest.h>

#include "observers/coverage/batches_for_test.h"

namespace netmend::observers {
namespace {

double spread_twin(const UnitBatch& batch) {
  if (batch.count() == 0) return 0;
  double total = 0;
  for (size_t l = 0; l < test_space()->layers().size(); ++l) {
    const int64_t first = test_space()->first(l), end = test_space()->first(l + 1);
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

TEST(Nlc, EqualsASlowTwin) { expect_twin(Nlc(test_space()), spread_twin, 1e-9); }

}  // namespace
}  // namespace netmend::observers
