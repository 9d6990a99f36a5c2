#include "stats/comparisons.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/distributions.h"
#include "stats/moments.h"

namespace netmend::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Moments moments_of(std::span<const double> values) {
  Moments moments;
  for (double value : values) moments.add(value);
  return moments;
}

double two_sided(double t, double degrees) { return std::min(1.0, 2 * t_tail(std::abs(t), degrees)); }

double effect_of(double difference, double deviation) {
  if (difference == 0) return 0;
  return deviation > 0 ? difference / deviation : std::copysign(kInfinity, difference);
}

}  // namespace

Comparison t_test(std::span<const double> a, std::span<const double> b) {
  const Moments x = moments_of(a), y = moments_of(b);
  if (x.count() < 2 || y.count() < 2) return {kNaN, kNaN};
  const auto n = double(x.count()), m = double(y.count());
  const double vx = x.sample_variance(), vy = y.sample_variance(), difference = x.mean() - y.mean();
  const double pooled = std::sqrt(((n - 1) * vx + (m - 1) * vy) / (n + m - 2)), error = vx / n + vy / m;
  if (error <= 0) return {difference == 0 ? 1.0 : 0.0, effect_of(difference, 0)};
  const double degrees = error * error / (vx * vx / (n * n * (n - 1)) + vy * vy / (m * m * (m - 1)));
  return {two_sided(difference / std::sqrt(error), degrees), effect_of(difference, pooled)};
}

Comparison one_against(double value, std::span<const double> sample) {
  const Moments moments = moments_of(sample);
  if (moments.count() < 2 || !std::isfinite(value)) return {kNaN, kNaN};
  const double deviation = std::sqrt(moments.sample_variance()), difference = value - moments.mean();
  if (deviation <= 0 || moments.constant()) return {difference == 0 ? 1.0 : 0.0, effect_of(difference, 0)};
  const auto n = double(moments.count());
  return {two_sided(difference / (deviation * std::sqrt(1 + 1 / n)), n - 1), difference / deviation};
}

Comparison paired_t_test(std::span<const double> differences) {
  const Moments moments = moments_of(differences);
  if (moments.count() < 2) return {kNaN, kNaN};
  const double deviation = std::sqrt(moments.sample_variance());
  if (deviation <= 0) return {moments.mean() == 0 ? 1.0 : 0.0, effect_of(moments.mean(), 0)};
  return {two_sided(moments.mean() / (deviation / std::sqrt(double(moments.count()))), double(moments.count() - 1)),
          moments.mean() / deviation};
}

double paired_power(double effect, int64_t pairs) {
  if (pairs < 2 || std::isnan(effect)) return kNaN;
  return t_power_95(double(pairs - 1), effect * std::sqrt(double(pairs)));
}

Anova one_way_anova(const std::vector<std::vector<double>>& groups) {
  Moments all;
  double within = 0, between = 0;
  int64_t used = 0;
  for (const auto& group : groups)
    if (group.size() >= 2) all.merge(moments_of(group)), ++used;
  Anova out{kNaN, kNaN, double(used - 1), double(all.count() - used)};
  if (used < 2 || out.degrees2 < 1) return out;
  for (const auto& group : groups) {
    if (group.size() < 2) continue;
    const Moments own = moments_of(group);
    within += own.sample_variance() * double(own.count() - 1);
    between += double(own.count()) * (own.mean() - all.mean()) * (own.mean() - all.mean());
  }
  if (within <= 0) return between > 0 ? Anova{kInfinity, 0, out.degrees1, out.degrees2} : out;
  out.f = (between / out.degrees1) / (within / out.degrees2);
  out.p = f_tail(out.f, out.degrees1, out.degrees2);
  return out;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.size(); ++i)
    if (!std::isnan(p[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size(), kNaN);
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, std::min(1.0, p[order[rank]] * double(order.size() - rank)));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

}  // namespace netmend::stats
