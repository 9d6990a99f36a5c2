// What other decision thresholds of the positive class would do, overall and for each group.
#pragma once

#include <string>
#include <vector>

#include "observers/task.h"
#include "slices/survey.h"

namespace netmend::slices {

struct ThresholdRates {
  std::string group;  ///< `all`, or `sex=Female`
  stats::Estimate accuracy;
  stats::Estimate selected;  ///< share predicted positive
  stats::Estimate true_positive_rate, false_positive_rate;
};

struct ThresholdStep {
  double threshold = 0;
  bool current = false;                ///< the one that is used now
  std::vector<ThresholdRates> groups;  ///< `all` first
};

/// Nineteen thresholds, 0.05 apart. Throws InputError unless there are two classes.
std::vector<ThresholdStep> sweep_thresholds(const Survey& survey, const observers::PredictionSettings& task);

}  // namespace netmend::slices
