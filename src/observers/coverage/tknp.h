// TKNP, top-k neuron patterns: how many different sets of units that are the k largest of their layers occur. Ma et
// al.: DeepGauge, ASE 2018.
//
// A pattern is one set per layer. Published programs differ: NLC's keeps the order of values, largest first,
// DeepImportance's smallest first, so that one set counts up to k! times.
#pragma once

#include "observers/coverage/patterns.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

class Tknp : public PatternCriterion {
 public:
  Tknp(SpacePtr space, int64_t k = 3, Published published = Published::kCorrected)
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

CriterionRow tknp_row();

}  // namespace netmend::observers
