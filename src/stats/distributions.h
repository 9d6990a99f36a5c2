// Tails and quantiles of the usual distributions; all of them come from Boost.Math.
#pragma once

#include <cstdint>

namespace netmend::stats {

/// P(Z > z) of a standard normal distribution.
double normal_tail(double z);
/// P(T > t) of Student's distribution.
double t_tail(double t, double degrees);
/// The t that |T| exceeds with probability 0.05.
double t_quantile_95(double degrees);
/// P(|T| > t_quantile_95) of the noncentral distribution: the power of a t-test.
double t_power_95(double degrees, double noncentrality);
/// P(X > x) of a chi-squared distribution; 1 for no degrees of freedom.
double chi_squared_tail(double x, double degrees);
/// P(F > f).
double f_tail(double f, double degrees1, double degrees2);
/// P(X ≤ hits) of `trials` with probability `p` each.
double binomial_cdf(int64_t hits, int64_t trials, double p);
/// P(X ≥ hits) of `trials` with probability `p` each; exact however small it is.
double binomial_tail(int64_t hits, int64_t trials, double p);
/// Fisher's exact test, one side: how likely `hits` or more of `count` are, when `all_hits` of `all` are drawn from
/// without looking. 1 for counts that cannot be.
double fisher_tail(int64_t hits, int64_t count, int64_t all_hits, int64_t all);

}  // namespace netmend::stats
