#include "observers/coverage/clusters.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace netmend::observers {

WeightedValues weigh(std::span<const float> values) {
  std::vector<float> sorted;
  for (float value : values)
    if (std::isfinite(value)) sorted.push_back(value);
  std::sort(sorted.begin(), sorted.end());
  WeightedValues data;
  for (float value : sorted) {
    if (data.values.empty() || data.values.back() != double(value)) {
      data.values.push_back(value);
      data.weights.push_back(0);
    }
    ++data.weights.back();
  }
  return data;
}

namespace {

/// Sums over values before a place; values are taken from the middle of their range, so that squares stay exact enough.
struct Running {
  double middle = 0;
  std::vector<double> weight{0}, sum{0}, square{0};

  explicit Running(const WeightedValues& data) {
    if (!data.values.empty()) middle = (data.values.front() + data.values.back()) / 2;
    for (size_t i = 0; i < data.values.size(); ++i) {
      const double value = data.values[i] - middle;
      weight.push_back(weight[i] + data.weights[i]);
      sum.push_back(sum[i] + data.weights[i] * value);
      square.push_back(square[i] + data.weights[i] * value * value);
    }
  }
  double weight_of(size_t from, size_t to) const { return weight[to] - weight[from]; }
  double sum_of(size_t from, size_t to) const { return sum[to] - sum[from]; }
  /// Squared distances from their mean.
  double cost(size_t from, size_t to) const {
    const double total = sum_of(from, to);
    return std::max(0.0, square[to] - square[from] - total * total / weight_of(from, to));
  }
};

}  // namespace

std::vector<size_t> cut_into(const WeightedValues& data, int64_t k) {
  const size_t count = data.values.size();
  const Running running(data);
  // best[j]: least cost of the first j values in the clusters made so far; begins[c][j]: where the last of them begins.
  std::vector<double> best(count + 1), next(count + 1);
  std::vector<std::vector<size_t>> begins(size_t(k), std::vector<size_t>(count + 1));
  for (size_t j = 1; j <= count; ++j) best[j] = running.cost(0, j);
  for (size_t c = 1; c < size_t(k); ++c) {
    // The best beginning never moves back as j grows, so halves of the range can be solved apart.
    std::function<void(size_t, size_t, size_t, size_t)> solve = [&](size_t low, size_t high, size_t from, size_t to) {
      if (low > high) return;
      const size_t middle = (low + high) / 2;
      next[middle] = INFINITY;
      for (size_t begin = std::max(from, c); begin <= std::min(to, middle - 1); ++begin) {
        const double cost = best[begin] + running.cost(begin, middle);
        if (cost < next[middle]) next[middle] = cost, begins[c][middle] = begin;
      }
      const size_t at = begins[c][middle];
      if (middle > low) solve(low, middle - 1, from, at);
      solve(middle + 1, high, at, to);
    };
    solve(c + 1, count, c, count - 1);
    best.swap(next);
  }
  std::vector<size_t> starts(static_cast<size_t>(k));
  size_t end = count;
  for (size_t c = size_t(k); c-- > 1;) starts[c] = end = begins[c][end];
  return starts;
}

std::vector<double> means_of(const WeightedValues& data, const std::vector<size_t>& starts) {
  const Running running(data);
  std::vector<double> means;
  for (size_t c = 0; c < starts.size(); ++c) {
    const size_t end = c + 1 < starts.size() ? starts[c + 1] : data.values.size();
    means.push_back(running.middle + running.sum_of(starts[c], end) / running.weight_of(starts[c], end));
  }
  return means;
}

double silhouette(const WeightedValues& data, const std::vector<size_t>& starts) {
  const Running running(data);
  const size_t count = data.values.size(), clusters = starts.size();
  auto end_of = [&](size_t c) { return c + 1 < clusters ? starts[c + 1] : count; };
  double total = 0;
  for (size_t own = 0; own < clusters; ++own) {
    const size_t from = starts[own], to = end_of(own);
    const double inside = running.weight_of(from, to);
    if (inside <= 1) continue;
    for (size_t i = from; i < to; ++i) {
      const double value = data.values[i] - running.middle;
      const double below = value * running.weight_of(from, i) - running.sum_of(from, i);
      const double above = running.sum_of(i, to) - value * running.weight_of(i, to);
      const double a = std::max(0.0, below + above) / (inside - 1);
      double b = INFINITY;
      for (size_t other = 0; other < clusters; ++other)
        if (other != own)
          b = std::min(b, std::abs(running.sum_of(starts[other], end_of(other)) /
                                       running.weight_of(starts[other], end_of(other)) -
                                   value));
      if (std::max(a, b) > 0) total += data.weights[i] * (b - a) / std::max(a, b);
    }
  }
  return running.weight.back() > 0 ? total / running.weight.back() : 0;
}

Clusters find_clusters(const WeightedValues& data, int64_t most) {
  if (data.values.size() < 2) return {data.values, 0};
  Clusters best;
  best.silhouette = -INFINITY;
  for (int64_t k = 2; k <= std::min<int64_t>(most, int64_t(data.values.size())); ++k) {
    std::vector<size_t> starts = cut_into(data, k);
    const double score = silhouette(data, starts);
    if (score > best.silhouette) best = {means_of(data, starts), score};
  }
  return best;
}

size_t nearest_centroid(std::span<const double> centroids, double value) {
  size_t best = 0;
  for (size_t c = 1; c < centroids.size(); ++c)
    if (std::abs(value - centroids[c]) < std::abs(value - centroids[best])) best = c;
  return best;
}

}  // namespace netmend::observers
