// TKNC, top-k neuron coverage: every unit is to be among the k largest of its layer once. Ma et al.: DeepGauge, ASE
// 2018. Of equal values the first unit goes first.
#pragma once

#include "observers/coverage/goals.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

class Tknc : public GoalCriterion {
 public:
  Tknc(SpacePtr space, int64_t k = 3) : GoalCriterion(std::move(space)), k_(k) {}
  std::string name() const override { return "TKNC"; }
  int64_t goals_a_unit() const override { return 1; }
  void reach(const UnitBatch& batch, Reached& reached) const override;
  std::vector<Parameter> parameters() const override { return {{"k", double(k_)}}; }

 private:
  int64_t k_;
};

/// Places of the k largest values, largest first and of equal ones the first; −1 where there are fewer. NaN and Inf are
/// never among them.
void find_top_k(const float* values, int64_t count, int64_t k, int32_t* places);

CriterionRow tknc_row();

}  // namespace netmend::observers
