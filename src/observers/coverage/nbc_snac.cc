#include "observers/coverage/nbc_snac.h"

#include <cmath>

#include "base/error.h"
#include "observers/coverage/materials.h"

namespace netmend::observers {

CornerCoverage::CornerCoverage(SpacePtr space, RangesPtr ranges, bool both, double deviations, Published published)
    : GoalCriterion(std::move(space)),
      ranges_(std::move(ranges)),
      both_(both),
      deviations_(deviations),
      published_(published) {
  check(int64_t(ranges_->size()) == space_->units(), "every unit needs its range");
}

void CornerCoverage::reach(const UnitBatch& batch, Reached& reached) const {
  const bool ends_count = published_ == Published::kDnnTip;
  for (int64_t row = 0; row < batch.count(); ++row) {
    const float* values = batch.input(row);
    for (int64_t u = 0; u < batch.units; ++u) {
      const UnitRange& range = (*ranges_)[size_t(u)];
      if (range.seen == 0 || !std::isfinite(values[u])) continue;
      const double margin = deviations_ == 0 ? 0 : deviations_ * range.deviation(), value = values[u];
      const double low = range.low - margin, high = range.high + margin;
      const bool above = value > high || (ends_count && value == high);
      if (both_ && (value < low || (ends_count && value == low))) reached.goals.push_back(2 * u);
      if (above) reached.goals.push_back(both_ ? 2 * u + 1 : u);
    }
    reached.end_input();
  }
}

CriterionRow nbc_row() {
  return {.name = "NBC",
          .full_name = "neuron boundary coverage",
          .asks = "values beyond the training range, on both sides",
          .reference = "Ma et al.: DeepGauge, ASE 2018",
          .parameter = {"deviations", 0},
          .needs = {.training = true},
          .make = [](const CriterionMaterials& m) {
            return make_criterion<Nbc>(m.space, m.ranges, m.parameter, m.published);
          }};
}

CriterionRow snac_row() {
  return {.name = "SNAC",
          .full_name = "strong neuron activation coverage",
          .asks = "values above the training range",
          .reference = "Ma et al.: DeepGauge, ASE 2018",
          .parameter = {"deviations", 0},
          .needs = {.training = true},
          .make = [](const CriterionMaterials& m) {
            return make_criterion<Snac>(m.space, m.ranges, m.parameter, m.published);
          }};
}

}  // namespace netmend::observers
