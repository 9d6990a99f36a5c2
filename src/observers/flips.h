// Two sets of answers to the same inputs: what got fixed, what got broken, overall, per class and per group.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "observers/result.h"
#include "observers/task.h"
#include "stats/moments.h"

namespace netmend::dataset {
class Dataset;
}

namespace netmend::observers {

/// Counts of inputs that one set of answers has right and the other wrong. For numbers without a tolerance an input is
/// fixed when the answer came closer and broken when it moved away.
struct FlipCount {
  int64_t samples = 0, right_before = 0, right_after = 0, fixed = 0, broken = 0;
  int64_t net() const { return fixed - broken; }
  stats::Estimate change() const { return stats::net_change(fixed, broken, samples); }
};

/// How an input was answered before: enough to compare with.
struct Before {
  int64_t right = SampleRow::kNotJudged;
  double error = 0;  ///< absolute, for numbers
};
Before before_of(const PredictionSettings& settings, const SampleRow& row);

enum class Change { kNone, kFixed, kBroken };

class Flips {
 public:
  Flips(const PredictionSettings& settings, const dataset::Dataset& data);
  /// `after` is the newer answer to the same input.
  Change add(const Before& before, const SampleRow& after);

  const FlipCount& whole() const { return whole_; }
  const std::vector<FlipCount>& per_class() const { return per_class_; }  ///< by label; empty without classes
  struct Group {
    std::string column, value;
    FlipCount count;
  };
  std::vector<Group> groups() const;
  /// Mean of (error after − error before), for numbers.
  stats::Estimate error_change() const { return difference_.mean_estimate(); }

 private:
  const PredictionSettings& settings_;
  const dataset::Dataset& data_;
  FlipCount whole_;
  std::vector<FlipCount> per_class_;
  std::map<std::pair<size_t, std::string>, FlipCount> groups_;
  stats::Moments difference_;  ///< of absolute errors
};

/// Is the newer one at most `margin` (a share, 0.005 for half a point) worse? By the 95 % interval of the change.
enum class Verdict { kBetter, kNotWorse, kUnclear, kWorse };
Verdict judge_change(const stats::Estimate& change, double margin);
const char* verdict_words(Verdict verdict);

}  // namespace netmend::observers
