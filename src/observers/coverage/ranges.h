// What units do on training data: smallest and largest value, mean and spread. Other criteria are held against it.
#pragma once

#include <vector>

#include "observers/coverage/criterion.h"

namespace netmend::observers {

struct UnitRange {
  double low = 0, high = 0, mean = 0;
  double squares = 0;  ///< sum of squared distances from the mean
  int64_t seen = 0;    ///< finite values
  int64_t zeros = 0;   ///< of them, exactly 0
  double deviation() const;
  /// Nothing to tell apart: all values are one.
  bool constant() const { return seen == 0 || high <= low; }
};

using RangesPtr = std::shared_ptr<const std::vector<UnitRange>>;

class RangeTally;

/// Not a criterion in itself: it has no figure.
class Ranges : public Criterion {
 public:
  using OwnTally = RangeTally;
  explicit Ranges(SpacePtr space) : space_(std::move(space)) {}
  std::string name() const override { return "ranges"; }
  std::unique_ptr<Tally> fresh() const override;
  Figure figure(const Tally&) const override { return {name()}; }
  bool merges_exactly() const override { return false; }
  double bytes(int64_t) const override { return double(space_->units()) * sizeof(UnitRange); }
  const UnitSpace& space() const { return *space_; }

 private:
  SpacePtr space_;
};

class RangeTally : public Tally {
 public:
  explicit RangeTally(int64_t units) : ranges(size_t(units)) {}
  void add(const UnitBatch& batch) override;
  void merge(const Tally& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  std::vector<UnitRange> ranges;

 private:
  void add_finite(const UnitBatch& batch);
  std::vector<double> means_, squares_;
  std::vector<float> lows_, highs_;
  std::vector<int32_t> zeros_;
};

}  // namespace netmend::observers
