// KMNC, k-multisection neuron coverage: the range that a unit has on training data is cut into sections, each of which
// is to be reached. Ma et al.: DeepGauge, ASE 2018.
//
// Sections are half-open, the last one closed. Units with one training value have no sections and do not count.
// Published programs differ: DeepImportance's counts sections outside the range too (here up to k on either side) and
// keeps constant units; NLC's leaves out the smallest value and keeps constant units, which it never covers; dnn-tip's
// leaves out the largest value; DeepGini's has k−1 sections inside and two outside.
#pragma once

#include "observers/coverage/goals.h"
#include "observers/coverage/ranges.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

class Kmnc : public GoalCriterion {
 public:
  /// `ranges`: one a unit.
  Kmnc(SpacePtr space, RangesPtr ranges, int64_t sections = 1000, Published published = Published::kCorrected);
  std::string name() const override { return "KMNC"; }
  int64_t goals_a_unit() const override;
  int64_t counted_a_unit() const override;
  bool has_goals(int64_t unit) const override;
  void reach(const UnitBatch& batch, Reached& reached) const override;
  std::vector<Parameter> parameters() const override { return {{"sections", double(sections_)}}; }

 private:
  /// The goal of a finite value among those of its unit, or -1.
  int64_t section(const UnitRange& range, double value) const;
  RangesPtr ranges_;
  int64_t sections_;
  Published published_;
};

CriterionRow kmnc_row();

}  // namespace netmend::observers
