// The values of units for every input, kept: what surprise and clusters are computed from, and from which inputs can be
// looked up again. Memory grows with the inputs; bytes() says how far before anything is taken, and a stride keeps
// every n-th input alone.
#pragma once

#include "observers/coverage/criterion.h"

namespace netmend::observers {

class TraceTally;

class Traces : public Criterion {
 public:
  using OwnTally = TraceTally;
  /// Layers from `first` to before `end` of the space. `expected` inputs are made room for.
  Traces(SpacePtr space, size_t first, size_t end, int64_t expected = 0, int64_t stride = 1);
  std::string name() const override { return "traces"; }
  std::unique_ptr<Tally> fresh() const override;
  Figure figure(const Tally&) const override { return {name()}; }
  double bytes(int64_t inputs) const override;
  int64_t units() const { return space_->first(end_) - space_->first(first_); }
  size_t first_layer() const { return first_; }
  size_t end_layer() const { return end_; }
  int64_t stride() const { return stride_; }
  int64_t expected() const { return expected_; }
  const UnitSpace& space() const { return *space_; }

 private:
  SpacePtr space_;
  size_t first_, end_;
  int64_t expected_, stride_;
};

class TraceTally : public Tally {
 public:
  explicit TraceTally(const Traces& description);
  void add(const UnitBatch& batch) override;
  void merge(const Tally& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  UnitBatch kept;  ///< its units and layers are those of the description

 private:
  const Traces& description_;
};

}  // namespace netmend::observers
