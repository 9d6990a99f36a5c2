// How wrong each prediction is, as one number that groups, rules and checks of the data share; and the metric of a
// part.
#pragma once

#include <functional>
#include <vector>

#include "observers/result.h"
#include "observers/task.h"

namespace netmend::slices {

/// 1 for wrong, 0 for right, NaN for not judged; of numbers without a tolerance: the absolute error in deviations of
/// the labels, so that 0.01 is a hundredth of how much they vary.
std::vector<double> failing_of(const observers::PredictionSettings& settings,
                               const std::vector<observers::SampleRow>& rows);
/// The deviation of the labels that turns errors of numbers into shares; 1 for other tasks.
double error_unit(const observers::PredictionSettings& settings, const std::vector<observers::SampleRow>& rows);

/// Probability of the positive class, where there are two and the row has a label.
double positive_score(const observers::PredictionSettings& settings, const observers::SampleRow& row);

/// The metric that counts, on those inputs that `counts` takes (by position in `rows`). Of metrics that need more than
/// rows hold (log loss of several labels, areas of many classes) the share of right predictions; `name` says which it
/// is.
observers::Metric metric_of(const observers::PredictionSettings& settings,
                            const std::vector<observers::SampleRow>& rows,
                            const std::function<bool(size_t row)>& counts = {});

}  // namespace netmend::slices
