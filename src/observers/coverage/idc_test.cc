#include "observers/coverage/idc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "observers/coverage/batches_for_test.h"

namespace netmend::observers {
namespace {

double combination_twin(const UnitBatch& batch, const std::vector<QuantisedUnit>& units) {
  std::set<std::vector<double>> seen;
  for (int64_t row = 0; row < batch.count(); ++row) {
    std::vector<double> combination;
    for (const QuantisedUnit& unit : units) {
      const double value = batch.input(row)[test_space()->first(1) + unit.unit];
      combination.push_back(
          *std::min_element(unit.clusters.centroids.begin(), unit.clusters.centroids.end(),
                            [&](double a, double b) { return std::abs(a - value) < std::abs(b - value); }));
    }
    seen.insert(combination);
  }
  return double(seen.size());
}

TEST(Idc, EqualsASlowTwin) {
  const MadeCriteria made = idc_row().make(test_materials());
  ASSERT_EQ(made.important.size(), 1u);
  const Idc& criterion = *made.important[0];
  std::vector<int64_t> units;
  for (const QuantisedUnit& unit : criterion.units()) units.push_back(unit.unit);
  EXPECT_EQ(units, (std::vector<int64_t>{3, 0, 7, 12}));
  expect_twin(criterion, [&](const UnitBatch& batch) { return combination_twin(batch, criterion.units()); });
}

TEST(Idc, OneCriterionForEachNumberOfUnitsThatThereIs) {
  CriterionMaterials materials = test_materials();
  materials.important = {2, 70, 80, 90};
  const MadeCriteria made = idc_row().make(materials);
  EXPECT_EQ(made.list.size(), 2u);   // 80 and 90 are 70 again
  EXPECT_EQ(made.notes.size(), 2u);  // and say so
  materials.importance.pop_back();
  EXPECT_NE(idc_row().make(materials).skipped, "");
}

}  // namespace
}  // namespace netmend::observers
