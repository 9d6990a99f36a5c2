// What an evaluation comes to: figures of the whole, per class, and one row per input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stats/intervals.h"

namespace netmend::observers {

/// One input's row; its form on disk too.
struct SampleRow {
  int64_t sample = 0;
  double label = -1, predicted = -1;  ///< class numbers, numbers, or how many labels are set
  float confidence = 0, loss = 0;
  enum Right : int64_t { kWrong, kRight, kNotJudged };
  int64_t right = kNotJudged;
};

struct ClassResult {
  std::string name;
  int64_t samples = 0, correct = 0, predicted = 0;
  double recall = 0, precision = 0;
  stats::Estimate range;  ///< of the recall
};

struct Metric {
  std::string name;
  stats::Estimate estimate;
};

struct PredictionResult {
  int64_t samples = 0, correct = 0, not_finite = 0;
  double accuracy = 0, loss = 0, mae = 0, rmse = 0;
  std::vector<Metric> metrics;  ///< all that fit the task, the one that counts first
  std::vector<ClassResult> per_class;
  std::vector<std::vector<int64_t>> confusion;
};
/// The class with the lowest recall; null where there are fewer than two.
inline const ClassResult* worst_class(const PredictionResult& result) {
  const ClassResult* worst = nullptr;
  for (const ClassResult& one : result.per_class)
    if (one.samples > 0 && (!worst || one.recall < worst->recall)) worst = &one;
  return result.per_class.size() > 1 ? worst : nullptr;
}

}  // namespace netmend::observers
