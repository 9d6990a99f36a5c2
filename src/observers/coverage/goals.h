// Criteria whose goals can be numbered in advance, some for each unit: an input reaches some of them, and a tally is
// the set of goals that were reached.
#pragma once

#include <cstdint>
#include <vector>

#include "observers/coverage/criterion.h"

namespace netmend::observers {

class GoalTally;

class GoalCriterion : public Criterion {
 public:
  using OwnTally = GoalTally;
  explicit GoalCriterion(SpacePtr space) : space_(std::move(space)) {}
  /// Goals are numbered unit by unit, so many a unit.
  virtual int64_t goals_a_unit() const = 0;
  virtual void reach(const UnitBatch& batch, Reached& reached) const = 0;
  /// Units without any goal do not count.
  virtual bool has_goals(int64_t) const { return true; }
  /// Goals of a unit that make up the total; fewer than there are numbers where what lies outside counts too.
  virtual int64_t counted_a_unit() const { return goals_a_unit(); }
  virtual std::vector<Parameter> parameters() const = 0;

  int64_t goals() const { return space_->units() * goals_a_unit(); }
  std::unique_ptr<Tally> fresh() const override;
  Figure figure(const Tally& tally) const override;
  double bytes(int64_t) const override { return double(goals()) / 8; }
  std::optional<int64_t> reach_by_input(const UnitBatch& batch, Reached& reached) const override;
  std::vector<int64_t> uncovered_units(const Tally& tally) const override;
  const UnitSpace& space() const { return *space_; }

 protected:
  SpacePtr space_;
};

class GoalTally : public Tally {
 public:
  explicit GoalTally(const GoalCriterion& criterion)
      : criterion_(criterion), bits_(size_t((criterion.goals() + 63) / 64)) {}
  void add(const UnitBatch& batch) override;
  void merge(const Tally& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;
  bool reached(int64_t goal) const { return bits_[size_t(goal / 64)] >> (goal % 64) & 1; }
  /// Goals that the unit has reached.
  int64_t reached_of(int64_t unit) const;

 private:
  const GoalCriterion& criterion_;
  std::vector<uint64_t> bits_;
  Reached scratch_;
};

}  // namespace netmend::observers
