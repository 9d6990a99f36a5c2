// The same judgement of answers as Predictions, on a part of the inputs: any metric for one group, in the same pass.
#pragma once

#include <functional>

#include "observers/predictions.h"

namespace netmend::observers {

struct PartState;

class PartPredictions : public stream::Observer {
 public:
  using State = PartState;
  /// Any thread may call `member`.
  PartPredictions(PredictionSettings settings, std::function<bool(int64_t sample)> member)
      : whole_(std::move(settings), false), member_(std::move(member)) {}
  std::string name() const override { return "part-predictions"; }
  std::vector<stream::Tap> taps() const override { return whole_.taps(); }
  std::unique_ptr<stream::State> fresh() const override;
  /// How to finish its states.
  const Predictions& whole() const { return whole_; }

 private:
  friend struct PartState;
  Predictions whole_;
  std::function<bool(int64_t)> member_;
};

struct PartState : stream::State {
  explicit PartState(const PartPredictions& observer)
      : judged(observer.whole_.settings(), false), observer_(observer) {}
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override { judged.merge(dynamic_cast<const PartState&>(later).judged); }
  void save(std::ostream& out) const override { judged.save(out); }
  void load(std::istream& in) override { judged.load(in); }

  PredictionState judged;

 private:
  const PartPredictions& observer_;
};

}  // namespace netmend::observers
