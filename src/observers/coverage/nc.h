// NC, neuron coverage: a unit is covered when, scaled by the smallest and largest element of its layer on that input,
// its mean is above a threshold. Pei, Cao, Yang, Jana: DeepXplore, SOSP 2017.
//
// Published programs differ. NLC's scales by the extremes of the means, not of the elements; DeepGini's puts the value
// through a logistic function instead; dnn-tip's does not scale. A layer that is all one value divides by zero there;
// here it covers nothing.
#pragma once

#include "observers/coverage/goals.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

class Nc : public GoalCriterion {
 public:
  Nc(SpacePtr space, double threshold = 0.75, Published published = Published::kCorrected)
      : GoalCriterion(std::move(space)), threshold_(threshold), published_(published) {}
  std::string name() const override { return "NC"; }
  int64_t goals_a_unit() const override { return 1; }
  void reach(const UnitBatch& batch, Reached& reached) const override;
  std::vector<Parameter> parameters() const override { return {{"threshold", threshold_}}; }

 private:
  double threshold_;
  Published published_;
};

CriterionRow nc_row();

}  // namespace netmend::observers
