// NBC, neuron boundary coverage, and SNAC, strong neuron activation coverage: what lies beyond the range that a unit
// has on training data is two corner regions. NBC asks for both of every unit, SNAC for the upper one. Ma et al.:
// DeepGauge, ASE 2018.
//
// Corner regions are strictly beyond the range; dnn-tip's program lets them begin at its ends.
#pragma once

#include "observers/coverage/goals.h"
#include "observers/coverage/ranges.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

/// What the two share.
class CornerCoverage : public GoalCriterion {
 public:
  /// Corners begin `deviations` standard deviations beyond the range.
  CornerCoverage(SpacePtr space, RangesPtr ranges, bool both, double deviations = 0,
                 Published published = Published::kCorrected);
  std::string name() const override { return both_ ? "NBC" : "SNAC"; }
  int64_t goals_a_unit() const override { return both_ ? 2 : 1; }
  bool has_goals(int64_t unit) const override { return (*ranges_)[size_t(unit)].seen > 0; }
  void reach(const UnitBatch& batch, Reached& reached) const override;
  std::vector<Parameter> parameters() const override { return {{"deviations", deviations_}}; }

 private:
  RangesPtr ranges_;
  bool both_;
  double deviations_;
  Published published_;
};

class Nbc : public CornerCoverage {
 public:
  Nbc(SpacePtr space, RangesPtr ranges, double deviations = 0, Published published = Published::kCorrected)
      : CornerCoverage(std::move(space), std::move(ranges), true, deviations, published) {}
};

class Snac : public CornerCoverage {
 public:
  Snac(SpacePtr space, RangesPtr ranges, double deviations = 0, Published published = Published::kCorrected)
      : CornerCoverage(std::move(space), std::move(ranges), false, deviations, published) {}
};

CriterionRow nbc_row();
CriterionRow snac_row();

}  // namespace netmend::observers
