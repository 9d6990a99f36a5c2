// The training inputs that drive each unit highest, so that one can tell whether tests come near, and show what would.
#pragma once

#include <vector>

#include "observers/coverage/criterion.h"

namespace netmend::observers {

class PeakTally;

/// Not a criterion in itself: it has no figure.
class Peaks : public Criterion {
 public:
  using OwnTally = PeakTally;
  static constexpr int64_t kKept = 64;  ///< inputs a unit
  explicit Peaks(SpacePtr space) : space_(std::move(space)) {}
  std::string name() const override { return "peaks"; }
  std::unique_ptr<Tally> fresh() const override;
  Figure figure(const Tally&) const override { return {name()}; }
  double bytes(int64_t) const override { return double(space_->units()) * double(kKept) * 12; }

 private:
  SpacePtr space_;
};

class PeakTally : public Tally {
 public:
  explicit PeakTally(int64_t units);
  void add(const UnitBatch& batch) override;
  void merge(const Tally& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  int64_t units() const { return int64_t(counts_.size()); }
  int64_t kept(int64_t unit) const { return counts_[size_t(unit)]; }
  /// The unit's n-th highest value, from 0, and the input; of equal values the earlier input first.
  float value(int64_t unit, int64_t n) const { return values_[size_t(unit * Peaks::kKept + n)]; }
  int64_t sample(int64_t unit, int64_t n) const { return samples_[size_t(unit * Peaks::kKept + n)]; }

 private:
  void insert(int64_t unit, float value, int64_t sample);
  std::vector<float> values_, least_;  ///< highest first; the value that a newcomer must exceed
  std::vector<int64_t> samples_;
  std::vector<int32_t> counts_;
};

/// A unit that many training inputs drive higher than any test does.
struct LowUnit {
  int64_t unit = 0;
  double tests = 0, training = 0;  ///< highest values
  int64_t higher = 0;              ///< training inputs above all tests; kKept stands for that or more
  std::vector<int64_t> samples;    ///< some of them
};
/// Units for which so many training inputs go higher than any test that tests drawn like training data would have
/// reached there in 999 of 1000 draws. False in `judged` when there are too few tests for the peaks that are kept.
std::vector<LowUnit> find_low_units(const PeakTally& peaks, int64_t training_inputs,
                                    const std::vector<double>& test_highs, int64_t tests, bool& judged);

}  // namespace netmend::observers
