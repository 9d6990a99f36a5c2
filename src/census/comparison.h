// How two parts of the data differ, and what is odd within one: plain functions of numbers. Effects first; with enough
// inputs every difference is significant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace netmend::census {

/// Largest distance of the two distribution functions (Kolmogorov and Smirnov), 0 … 1; NaNs are left out.
/// Values that lie no farther than `same` apart count as equal.
double ks_distance(std::span<const float> a, std::span<const float> b, float same = 0);
/// Distance of the means in units of the mean variance's root; 0 where both are constant and equal.
double standardised_difference(std::span<const float> a, std::span<const float> b);
/// Half of the sum of differences of shares, 0 … 1.
double shares_distance(std::span<const int64_t> a, std::span<const int64_t> b);
/// How likely shares so different are by chance: Fisher's exact test of two categories, chi-square test of more; those
/// with an expected count below five are counted together.
double shares_p(std::span<const int64_t> a, std::span<const int64_t> b);

/// Effective number of classes as a part of their number: exp(entropy) / classes; 1 when all are as many.
double evenness(std::span<const int64_t> counts);
/// Largest over smallest count of classes that occur.
double imbalance_ratio(std::span<const int64_t> counts);

/// Runs of equal labels against what a shuffled order would have (Wald and Wolfowitz, for any number of classes):
/// deviations from the mean, strongly negative for sorted data.
struct Runs {
  int64_t runs = 0;
  double expected = 0, z = 0;
};
Runs runs_test(std::span<const float> labels);

/// How well one column alone predicts the label: the accuracy when each of its values (or twenty quantile bins)
/// predicts its most frequent label, fitted on even inputs and judged on odd ones.
struct LeakageScore {
  double right = 0;   ///< accuracy on the judged inputs
  double common = 0;  ///< accuracy of always predicting the most frequent label
};
LeakageScore leakage_score(std::span<const float> values, std::span<const float> labels, int64_t classes,
                           bool category);

/// q-th quantile of finite values, by linear interpolation; NaN when there are none.
double quantile(std::vector<float> values, double q);

}  // namespace netmend::census
