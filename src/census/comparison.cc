#include "census/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "stats/distributions.h"

namespace netmend::census {
namespace {

std::vector<float> sorted_numbers(std::span<const float> values) {
  std::vector<float> out;
  for (float value : values)
    if (!std::isnan(value)) out.push_back(value);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

double ks_distance(std::span<const float> a, std::span<const float> b, float same) {
  std::vector<float> x = sorted_numbers(a), y = sorted_numbers(b);
  if (x.empty() || y.empty()) return 0;
  double most = 0;
  for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {
    const float here = std::min(x[i], y[j]) + same;
    while (i < x.size() && x[i] <= here) ++i;
    while (j < y.size() && y[j] <= here) ++j;
    most = std::max(most, std::abs(double(i) / double(x.size()) - double(j) / double(y.size())));
  }
  return most;
}

double standardised_difference(std::span<const float> a, std::span<const float> b) {
  auto moments = [](std::span<const float> values, double& mean, double& variance) {
    double count = 0, sum = 0, squares = 0;
    for (float value : values)
      if (std::isfinite(value)) sum += value, ++count;
    mean = count > 0 ? sum / count : 0;
    for (float value : values)
      if (std::isfinite(value)) squares += (value - mean) * (value - mean);
    variance = count > 0 ? squares / count : 0;
  };
  double mean_a, variance_a, mean_b, variance_b;
  moments(a, mean_a, variance_a), moments(b, mean_b, variance_b);
  const double deviation = std::sqrt((variance_a + variance_b) / 2);
  if (deviation > 0) return (mean_b - mean_a) / deviation;
  return mean_a == mean_b ? 0 : std::copysign(1e3, mean_b - mean_a);
}

double shares_distance(std::span<const int64_t> a, std::span<const int64_t> b) {
  const double all_a = double(std::accumulate(a.begin(), a.end(), int64_t(0))),
               all_b = double(std::accumulate(b.begin(), b.end(), int64_t(0)));
  if (all_a == 0 || all_b == 0) return 0;
  double sum = 0;
  for (size_t c = 0; c < std::max(a.size(), b.size()); ++c)
    sum += std::abs((c < a.size() ? double(a[c]) : 0) / all_a - (c < b.size() ? double(b[c]) : 0) / all_b);
  return sum / 2;
}

double shares_p(std::span<const int64_t> a, std::span<const int64_t> b) {
  const double all_a = double(std::accumulate(a.begin(), a.end(), int64_t(0))),
               all_b = double(std::accumulate(b.begin(), b.end(), int64_t(0)));
  if (all_a == 0 || all_b == 0) return 1;
  // The chi-square distribution holds for expected counts of five or more: rarer ones are counted together, and two
  // that are left are compared exactly.
  std::vector<std::pair<double, double>> counts;
  for (size_t c = 0; c < std::max(a.size(), b.size()); ++c) {
    const double x = c < a.size() ? double(a[c]) : 0, y = c < b.size() ? double(b[c]) : 0;
    if (x + y > 0) counts.emplace_back(x, y);
  }
  if (counts.size() > 2) {
    const double smaller = std::min(all_a, all_b) / (all_a + all_b);
    double x = 0, y = 0;
    std::erase_if(counts, [&](const auto& one) {
      const bool rare = (one.first + one.second) * smaller < 5;
      if (rare) x += one.first, y += one.second;
      return rare;
    });
    if (x + y > 0) counts.emplace_back(x, y);
  }
  if (counts.size() < 2) return 1;
  if (counts.size() == 2) {
    const auto hits = int64_t(counts[0].first), count = int64_t(all_a), hits_all = hits + int64_t(counts[0].second),
               all = count + int64_t(all_b);
    const double more = stats::fisher_tail(hits, count, hits_all, all),
                 fewer = stats::fisher_tail(hits_all - hits, all - count, hits_all, all);
    return std::min(1.0, 2 * std::min(more, fewer));
  }
  double sum = 0;
  const double degrees = double(counts.size()) - 1;
  for (const auto& [x, y] : counts) {
    const double both = x + y, expected_x = both * all_a / (all_a + all_b), expected_y = both - expected_x;
    sum += (x - expected_x) * (x - expected_x) / expected_x + (y - expected_y) * (y - expected_y) / expected_y;
  }
  return stats::chi_squared_tail(sum, degrees);
}

double evenness(std::span<const int64_t> counts) {
  const double all = double(std::accumulate(counts.begin(), counts.end(), int64_t(0)));
  if (all == 0 || counts.empty()) return 1;
  double entropy = 0;
  for (int64_t count : counts)
    if (count > 0) entropy -= double(count) / all * std::log(double(count) / all);
  return std::exp(entropy) / double(counts.size());
}

double imbalance_ratio(std::span<const int64_t> counts) {
  int64_t least = INT64_MAX, most = 0;
  for (int64_t count : counts)
    if (count > 0) least = std::min(least, count), most = std::max(most, count);
  return most > 0 ? double(most) / double(least) : 1;
}

Runs runs_test(std::span<const float> labels) {
  std::map<float, int64_t> counts;
  int64_t all = 0;
  Runs found;
  float before = NAN;
  for (float label : labels) {
    if (std::isnan(label)) continue;
    found.runs += all == 0 || label != before;
    before = label, ++all, ++counts[label];
  }
  if (all < 2) return found;
  const double n = double(all);
  double squares = 0, cubes = 0;
  for (const auto& [label, count] : counts)
    squares += double(count) * double(count), cubes += double(count) * double(count) * double(count);
  found.expected = (n * (n + 1) - squares) / n;
  const double variance =
      (squares * (squares + n * (n + 1)) - 2 * n * cubes - n * n * n) / (n * n * std::max(1.0, n - 1));
  found.z = variance > 0 ? (double(found.runs) - found.expected) / std::sqrt(variance) : 0;
  return found;
}

LeakageScore leakage_score(std::span<const float> values, std::span<const float> labels, int64_t classes,
                           bool category) {
  std::vector<float> even;
  for (size_t i = 0; i < values.size(); i += 2) even.push_back(values[i]);
  std::vector<float> edges;
  if (!category) {
    std::vector<float> order = sorted_numbers(even);
    for (int k = 1; k < 20 && !order.empty(); ++k) edges.push_back(order[order.size() * size_t(k) / 20]);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  auto bin_of = [&](float value) {
    if (category) return int64_t(value);
    return std::isnan(value) ? int64_t(-1)
                             : int64_t(std::upper_bound(edges.begin(), edges.end(), value) - edges.begin());
  };
  std::map<int64_t, std::vector<int64_t>> counts;
  std::vector<int64_t> all(size_t(classes), 0);
  auto usable = [&](float label) { return label >= 0 && label < float(classes); };
  for (size_t i = 0; i < values.size(); i += 2) {
    if (!usable(labels[i])) continue;
    auto& here = counts.try_emplace(bin_of(values[i]), size_t(classes), 0).first->second;
    ++here[size_t(labels[i])], ++all[size_t(labels[i])];
  }
  auto commonest = [](const std::vector<int64_t>& of) { return std::max_element(of.begin(), of.end()) - of.begin(); };
  int64_t judged = 0, right = 0, common = 0;
  for (size_t i = 1; i < values.size(); i += 2) {
    if (!usable(labels[i])) continue;
    auto hit = counts.find(bin_of(values[i]));
    ++judged;
    right += int64_t(labels[i]) == commonest(hit == counts.end() ? all : hit->second);
    common += int64_t(labels[i]) == commonest(all);
  }
  if (judged == 0) return {};
  return {double(right) / double(judged), double(common) / double(judged)};
}

double quantile(std::vector<float> values, double q) {
  std::erase_if(values, [](float value) { return !std::isfinite(value); });
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  const double at = q * double(values.size() - 1);
  const auto low = size_t(at);
  const double part = at - double(low);
  return low + 1 < values.size() ? values[low] * (1 - part) + values[low + 1] * part : values[low];
}

}  // namespace netmend::census
