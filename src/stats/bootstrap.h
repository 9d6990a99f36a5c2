// Rank correlation, and intervals of any figure of a set of things by drawing from the set again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "stats/intervals.h"

namespace netmend::stats {

/// Spearman's, with mean ranks for equal values; NaN where one side does not vary.
double rank_correlation(std::span<const double> a, std::span<const double> b);

/// The figure of things 0 … count − 1, and where 95 % of its values lie over 2,000 draws with replacement (percentile
/// bootstrap). Draws for which the figure is NaN are left out; NaN limits where more than a tenth are.
Estimate bootstrap(int64_t count, uint64_t seed, const std::function<double(std::span<const size_t>)>& figure);

/// The rank correlation of pairs with its interval.
Estimate rank_agreement(std::span<const double> a, std::span<const double> b, uint64_t seed);

}  // namespace netmend::stats
