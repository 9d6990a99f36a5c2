#include "stats/intervals.h"

#include <algorithm>
#include <cmath>

#include "stats/distributions.h"

namespace netmend::stats {
namespace {

Estimate unknown() { return {NAN, NAN, NAN}; }

}  // namespace

Estimate rate(int64_t hits, int64_t count) {
  if (count <= 0) return unknown();
  const double n = double(count), p = double(hits) / n, z2 = kDeviations * kDeviations;
  const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kDeviations / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {p, std::max(0.0, std::min(p, middle - half)), std::min(1.0, std::max(p, middle + half))};
}

Estimate mean(double sum, double squares, int64_t count) {
  if (count <= 0 || !std::isfinite(sum)) return unknown();
  const double n = double(count), value = sum / n;
  if (count == 1) return {value, -INFINITY, INFINITY};
  const double variance = std::max(0.0, (squares - sum * value) / (n - 1));
  const double half = t_quantile_95(n - 1) * std::sqrt(variance / n);
  return {value, value - half, value + half};
}

Estimate average(std::span<const Estimate> parts) {
  double value = 0, below = 0, above = 0;
  int64_t count = 0;
  for (const Estimate& part : parts) {
    if (std::isnan(part.value)) continue;
    ++count;
    value += part.value;
    below += (part.value - part.low) * (part.value - part.low);
    above += (part.high - part.value) * (part.high - part.value);
  }
  if (count == 0) return unknown();
  const double n = double(count);
  return {value / n, (value - std::sqrt(below)) / n, (value + std::sqrt(above)) / n};
}

Estimate net_change(int64_t fixed, int64_t broken, int64_t count) {
  if (count <= 0) return unknown();
  const double n = double(count) + 2, up = (double(fixed) + 1) / n, down = (double(broken) + 1) / n;
  const double middle = up - down, half = kDeviations * std::sqrt((up + down - middle * middle) / n);
  return {double(fixed - broken) / double(count), std::max(-1.0, middle - half), std::min(1.0, middle + half)};
}

double sign_test(int64_t fixed, int64_t broken) {
  const int64_t count = fixed + broken, fewer = std::min(fixed, broken);
  return count == 0 ? 1 : std::min(1.0, 2 * binomial_cdf(fewer, count, 0.5));
}

}  // namespace netmend::stats
