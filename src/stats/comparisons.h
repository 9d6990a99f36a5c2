// Tests that compare groups of numbers, with their effect sizes, and the correction for many of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace netmend::stats {

struct Comparison {
  double p = 1;       ///< of two sides; NaN where there are too few numbers
  double effect = 0;  ///< Cohen's d with the pooled deviation: 0 for equal means, infinite without any spread
};

/// Welch's t-test. Without any spread on either side p is 1 for equal means and 0 for others.
Comparison t_test(std::span<const double> a, std::span<const double> b);
/// One new number against a sample: how likely so far an observation is (t with n − 1 degrees, deviation · √(1 + 1/n)).
Comparison one_against(double value, std::span<const double> sample);
/// Differences of pairs against 0 (paired t-test); the effect is mean over deviation of the differences.
Comparison paired_t_test(std::span<const double> differences);
/// How likely a paired t-test of `pairs` pairs finds an effect of that size (p < 0.05); NaN for fewer than two pairs.
double paired_power(double effect, int64_t pairs);

struct Anova {
  double f = 0, p = 1;  ///< NaN where fewer than two groups hold numbers or none varies
  double degrees1 = 0, degrees2 = 0;
};
/// One-way analysis of variance; groups of fewer than two numbers are left out.
Anova one_way_anova(const std::vector<std::vector<double>>& groups);

/// Holm's correction: adjusted p-values in the same order; NaN stays NaN.
std::vector<double> holm(std::span<const double> p);

}  // namespace netmend::stats
