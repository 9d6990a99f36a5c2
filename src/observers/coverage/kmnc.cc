#include "observers/coverage/kmnc.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "observers/coverage/materials.h"

namespace netmend::observers {

Kmnc::Kmnc(SpacePtr space, RangesPtr ranges, int64_t sections, Published published)
    : GoalCriterion(std::move(space)), ranges_(std::move(ranges)), sections_(sections), published_(published) {
  check(int64_t(ranges_->size()) == space_->units(), "every unit needs its range");
}

int64_t Kmnc::goals_a_unit() const {
  if (published_ == Published::kDeepImportance) return 3 * sections_;
  return published_ == Published::kDeepGini ? sections_ + 1 : sections_;
}

int64_t Kmnc::counted_a_unit() const { return published_ == Published::kDeepImportance ? sections_ : goals_a_unit(); }

bool Kmnc::has_goals(int64_t unit) const {
  return published_ == Published::kDeepImportance || published_ == Published::kNlc ||
         !(*ranges_)[size_t(unit)].constant();
}

int64_t Kmnc::section(const UnitRange& range, double value) const {
  if (range.constant()) return published_ == Published::kDeepImportance ? sections_ : -1;
  const double share = (value - range.low) / (range.high - range.low);
  switch (published_) {
    case Published::kDeepImportance:
      return int64_t(std::clamp<double>(std::floor(share * double(sections_)), -double(sections_),
                                        2 * double(sections_) - 1)) +
             sections_;
    case Published::kNlc: {
      const double place = std::ceil(share * double(sections_));
      return place >= 1 && place <= double(sections_) ? int64_t(place) - 1 : -1;
    }
    case Published::kDeepGini:
      if (value < range.low) return 0;
      if (value >= range.high) return sections_;
      return 1 + std::min(int64_t(share * double(sections_ - 1)), sections_ - 2);
    default:
      if (value < range.low || value > range.high || (published_ == Published::kDnnTip && value == range.high))
        return -1;
      return std::min(int64_t(share * double(sections_)), sections_ - 1);
  }
}

void Kmnc::reach(const UnitBatch& batch, Reached& reached) const {
  const int64_t each = goals_a_unit();
  for (int64_t row = 0; row < batch.count(); ++row) {
    const float* values = batch.input(row);
    for (int64_t u = 0; u < batch.units; ++u) {
      if (!std::isfinite(values[u])) continue;
      int64_t at = section((*ranges_)[size_t(u)], values[u]);
      if (at >= 0) reached.goals.push_back(u * each + at);
    }
    reached.end_input();
  }
}

CriterionRow kmnc_row() {
  return {.name = "KMNC",
          .full_name = "k-multisection neuron coverage",
          .asks = "every part of each unit's training range",
          .reference = "Ma et al.: DeepGauge, ASE 2018",
          .parameter = {"sections", 1000, true, 2},
          .needs = {.training = true},
          .fine = true,
          .make = [](const CriterionMaterials& m) {
            return make_criterion<Kmnc>(m.space, m.ranges, int64_t(m.parameter), m.published);
          }};
}

}  // namespace netmend::observers
