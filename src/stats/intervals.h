// How certain a figure is: 95 % intervals for rates, means and differences, from counts and sums alone.
#pragma once

#include <cstdint>
#include <span>

namespace netmend::stats {

/// Deviations of a normal distribution that hold 95 % of it on both sides of its mean.
constexpr double kDeviations = 1.959963984540054;

/// A figure and where it lies with 95 % confidence; NaN where nothing was counted.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

/// A share of independent trials (Wilson's score interval: right for 0, for all and for few).
Estimate rate(int64_t hits, int64_t count);
/// A mean, from the sum and the sum of squares of `count` values.
Estimate mean(double sum, double squares, int64_t count);
/// The mean of figures that were estimated apart: their distances to their own limits add up in quadrature, which keeps
/// uneven intervals uneven (Zou and Donner 2008). Figures that are NaN are left out.
Estimate average(std::span<const Estimate> parts);

/// What changed between two sets of predictions for the same inputs: (fixed − broken) / count, with the interval of
/// Bonett and Price (2012), which holds for few changes too.
Estimate net_change(int64_t fixed, int64_t broken, int64_t count);
/// How likely so uneven a split of changes is when each goes either way with equal chance (McNemar's exact test, two
/// sides).
double sign_test(int64_t fixed, int64_t broken);

}  // namespace netmend::stats
