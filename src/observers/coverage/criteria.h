// Any number of criteria over one pass: the values of units are read once a batch and shown to all.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "observers/coverage/criterion.h"

namespace netmend::observers {

struct CriteriaState;

class Criteria : public stream::Observer {
 public:
  using State = CriteriaState;
  using List = std::vector<std::shared_ptr<const Criterion>>;
  using Filter = std::function<bool(const SampleRow&)>;
  /// `counts` says which inputs are shown to the criteria; empty for all. Any thread may call.
  Criteria(PredictionSettings predictions, SpacePtr space, List list, Filter counts = {});
  std::string name() const override { return "coverage"; }
  std::vector<stream::Tap> taps() const override;
  std::unique_ptr<stream::State> fresh() const override;
  bool merges_exactly() const override;
  const List& list() const { return list_; }
  const UnitSpace& space() const { return *space_; }

 private:
  friend struct CriteriaState;
  Predictions predictions_;
  SpacePtr space_;
  UnitReader reader_;
  List list_;
  Filter counts_;
};

struct CriteriaState : stream::State {
  explicit CriteriaState(const Criteria& observer);
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  /// The tally of a criterion that is in the observer's list.
  const Tally& tally(const Criterion& criterion) const;
  /// The same, by its own type.
  template <typename T>
  const typename T::OwnTally& own_tally(const T& criterion) const {
    return static_cast<const typename T::OwnTally&>(tally(criterion));
  }

  const Criteria& observer() const { return observer_; }

  int64_t samples = 0;                          ///< that were shown to the criteria
  std::vector<std::unique_ptr<Tally>> tallies;  ///< one a criterion

 private:
  const Criteria& observer_;
  PredictionState judge_;  ///< of the batch at hand
  UnitBatch batch_;
};

}  // namespace netmend::observers
