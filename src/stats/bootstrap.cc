#include "stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace netmend::stats {
namespace {

constexpr int kDraws = 2000;

std::vector<double> ranks(std::span<const double> x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> rank(x.size());
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && x[order[end]] == x[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) rank[order[i]] = double(first + end + 1) / 2;
  }
  return rank;
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> p = ranks(a), q = ranks(b);
  const double middle = (double(a.size()) + 1) / 2;
  double pq = 0, pp = 0, qq = 0;
  for (size_t i = 0; i < std::min(p.size(), q.size()); ++i) {
    pq += (p[i] - middle) * (q[i] - middle);
    pp += (p[i] - middle) * (p[i] - middle), qq += (q[i] - middle) * (q[i] - middle);
  }
  return pp > 0 && qq > 0 ? pq / std::sqrt(pp * qq) : NAN;
}

Estimate bootstrap(int64_t count, uint64_t seed, const std::function<double(std::span<const size_t>)>& figure) {
  std::vector<size_t> drawn(size_t(std::max<int64_t>(0, count)));
  std::iota(drawn.begin(), drawn.end(), 0);
  Estimate out{figure(drawn), NAN, NAN};
  std::vector<double> values;
  Random random(seed, 17);
  for (int draw = 0; draw < kDraws && count > 0; ++draw) {
    for (size_t& one : drawn) one = random.below(uint64_t(count));
    if (const double value = figure(drawn); !std::isnan(value)) values.push_back(value);
  }
  if (values.size() < kDraws * 9 / 10) return out;
  std::sort(values.begin(), values.end());
  const size_t aside = values.size() / 40;
  out.low = values[aside], out.high = values[values.size() - 1 - aside];
  return out;
}

Estimate rank_agreement(std::span<const double> a, std::span<const double> b, uint64_t seed) {
  std::vector<double> p(a.size()), q(a.size());
  return bootstrap(int64_t(a.size()), seed, [&](std::span<const size_t> drawn) {
    for (size_t i = 0; i < drawn.size(); ++i) p[i] = a[drawn[i]], q[i] = b[drawn[i]];
    return rank_correlation(p, q);
  });
}

}  // namespace netmend::stats
