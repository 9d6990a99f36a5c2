// TKNC and TKNP: which units are among the k largest of their layer, and how many different sets of such units occur.
// Ma et al.: DeepGauge, ASE 2018. Of equal values the first unit goes first.
//
// A pattern is one set a layer. Published programs differ: NLC's keeps the order of values, largest first,
// DeepImportance's smallest first, so that one set counts up to k! times.
#pragma once

#include "observers/coverage/goals.h"
#include "observers/coverage/patterns.h"

namespace netmend::observers {

class TopUnits : public GoalCriterion {
 public:
  TopUnits(SpacePtr space, int64_t k = 3) : GoalCriterion(std::move(space)), k_(k) {}
  std::string name() const override { return "TKNC"; }
  int64_t goals_a_unit() const override { return 1; }
  void reach(const UnitBatch& batch, Reached& reached) const override;
  std::vector<Parameter> parameters() const override { return {{"k", double(k_)}}; }

 private:
  int64_t k_;
};

class TopPatterns : public PatternCriterion {
 public:
  TopPatterns(SpacePtr space, int64_t k = 3, Published published = Published::kCorrected)
      : space_(std::move(space)), k_(k), published_(published) {}
  std::string name() const override { return "TKNP"; }
  std::string pattern(const UnitBatch& batch, int64_t row) const override;
  std::vector<Parameter> parameters() const override { return {{"k", double(k_)}}; }
  int64_t pattern_bytes() const override { return int64_t(space_->layers().size()) * k_ * int64_t(sizeof(int32_t)); }

 private:
  SpacePtr space_;
  int64_t k_;
  Published published_;
};

}  // namespace netmend::observers
