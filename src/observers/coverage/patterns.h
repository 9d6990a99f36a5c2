// Criteria that count different patterns: an input shows exactly one. There may be more possible patterns than any
// number can hold, so those that occur are kept, how often they did, and the first inputs that showed them.
#pragma once

#include <array>
#include <string>
#include <unordered_map>

#include "observers/coverage/criterion.h"

namespace netmend::observers {

class PatternCriterion : public Criterion {
 public:
  /// The input's pattern as bytes; "" when it shows none (a value is not a number).
  virtual std::string pattern(const UnitBatch& batch, int64_t row) const = 0;
  virtual std::vector<Parameter> parameters() const = 0;
  /// Number of possible patterns; below 0 when that is not what one divides by.
  virtual double total() const { return -1; }
  virtual int64_t pattern_bytes() const = 0;
  std::unique_ptr<Tally> fresh() const override;
  Figure figure(const Tally& tally) const override;
  double bytes(int64_t inputs) const override { return double(inputs) * double(pattern_bytes() + 96); }
};

struct PatternSeen {
  int64_t count = 0;
  std::array<int64_t, 3> samples = {-1, -1, -1};  ///< the first that showed it
};

class PatternTally : public Tally {
 public:
  explicit PatternTally(const PatternCriterion& criterion) : criterion_(criterion) {}
  void add(const UnitBatch& batch) override;
  void merge(const Tally& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  std::unordered_map<std::string, PatternSeen> seen;

 private:
  const PatternCriterion& criterion_;
};

}  // namespace netmend::observers
