// What else the network thought of: the likeliest classes of each input with their probabilities, and how spread the
// answer is. What label checks, prioritisation and calibration need of the outputs, in a few numbers an input.
#pragma once

#include <array>
#include <vector>

#include "observers/predictions.h"

namespace netmend::observers {

struct TopRow {
  static constexpr int64_t kKept = 5;
  int64_t sample = 0;
  int32_t label = -1;                    ///< -1 without one
  float given = 0;                       ///< probability of the label
  float gini = 0, entropy = 0;           ///< 1 − Σp², −Σ p ln p
  std::array<int32_t, kKept> classes{};  ///< likeliest first; -1 behind the last
  std::array<float, kKept> probabilities{};
  /// By how much the first leads the second.
  float margin() const { return probabilities[0] - probabilities[1]; }
};

struct TopState;

/// For answers that are classes (two for one sigmoid). One row an input, in the order of the data; answers that are not
/// finite have no classes.
class TopPredictions : public stream::Observer {
 public:
  using State = TopState;
  explicit TopPredictions(PredictionSettings settings) : settings_(std::move(settings)) {}
  std::string name() const override { return "top-predictions"; }
  std::vector<stream::Tap> taps() const override;
  std::unique_ptr<stream::State> fresh() const override;
  bool merges_exactly() const override { return true; }

 private:
  PredictionSettings settings_;
};

struct TopState : stream::State {
  explicit TopState(const PredictionSettings& settings) : settings_(settings) {}
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  std::vector<TopRow> rows;

 private:
  const PredictionSettings& settings_;
};

}  // namespace netmend::observers
