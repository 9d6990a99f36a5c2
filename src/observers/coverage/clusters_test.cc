#include "observers/coverage/clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"
#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/idc.h"

namespace netmend::observers {
namespace {

double cost_of(const std::vector<double>& values) {
  double mean = 0, cost = 0;
  for (double value : values) mean += value / double(values.size());
  for (double value : values) cost += (value - mean) * (value - mean);
  return cost;
}

std::vector<std::vector<double>> parts_of(const std::vector<double>& sorted, const std::vector<size_t>& starts) {
  std::vector<std::vector<double>> parts;
  for (size_t c = 0; c < starts.size(); ++c)
    parts.emplace_back(sorted.begin() + std::ptrdiff_t(starts[c]),
                       sorted.begin() + std::ptrdiff_t(c + 1 < starts.size() ? starts[c + 1] : sorted.size()));
  return parts;
}

double total_cost(const std::vector<double>& sorted, const std::vector<size_t>& starts) {
  double total = 0;
  for (const auto& part : parts_of(sorted, starts)) total += cost_of(part);
  return total;
}

/// Every way to cut.
double least_cost(const std::vector<double>& sorted, int64_t k, std::vector<size_t> starts = {0}) {
  if (int64_t(starts.size()) == k) return total_cost(sorted, starts);
  double least = INFINITY;
  for (size_t next = starts.back() + 1; next < sorted.size(); ++next) {
    starts.push_back(next);
    least = std::min(least, least_cost(sorted, k, starts));
    starts.pop_back();
  }
  return least;
}

/// Every two values.
double silhouette_twin(const std::vector<double>& sorted, const std::vector<size_t>& starts) {
  const auto parts = parts_of(sorted, starts);
  double total = 0;
  for (size_t own = 0; own < parts.size(); ++own)
    for (double value : parts[own]) {
      auto mean_distance = [&](const std::vector<double>& part, double less) {
        double sum = 0;
        for (double other : part) sum += std::abs(other - value);
        return sum / (double(part.size()) - less);
      };
      if (parts[own].size() == 1) continue;
      const double a = mean_distance(parts[own], 1);
      double b = INFINITY;
      for (size_t other = 0; other < parts.size(); ++other)
        if (other != own) b = std::min(b, mean_distance(parts[other], 0));
      total += (b - a) / std::max(a, b);
    }
  return total / double(sorted.size());
}

TEST(Clusters, AreTheBestOfAllCuts) {
  Random random(3);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<float> values;
    for (uint64_t i = 0; i < 5 + random.below(20); ++i)
      values.push_back(float(random.normal() + (random.below(3) ? 0 : 6)));
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    WeightedValues data = weigh(values);
    for (int64_t k : {1, 2, 3, 4}) {
      std::vector<size_t> starts = cut_into(data, k);
      EXPECT_NEAR(total_cost(sorted, starts), least_cost(sorted, k), 1e-9);
      if (k > 1) {
        EXPECT_NEAR(silhouette(data, starts), silhouette_twin(sorted, starts), 1e-9);
      }
    }
  }
}

TEST(Clusters, WeighEqualValues) {
  WeightedValues data = weigh(std::vector<float>{2, 1, 1, NAN, 2, 1, INFINITY});
  EXPECT_EQ(data.values, (std::vector<double>{1, 2}));
  EXPECT_EQ(data.weights, (std::vector<double>{3, 2}));
  Clusters found = find_clusters(data);
  EXPECT_EQ(found.centroids, (std::vector<double>{1, 2}));
  EXPECT_NEAR(found.silhouette, 1, 1e-12);
}

TEST(Clusters, FindTheirNumber) {
  Random random(5);
  for (int64_t k : {2, 3, 4}) {
    std::vector<float> values;
    for (int i = 0; i < 600; ++i) values.push_back(float(10 * double(random.below(uint64_t(k))) + random.normal()));
    Clusters found = find_clusters(weigh(values));
    ASSERT_EQ(int64_t(found.centroids.size()), k);
    for (int64_t c = 0; c < k; ++c) EXPECT_NEAR(found.centroids[size_t(c)], 10 * double(c), 0.5);
  }
}

TEST(Clusters, FewValuesMakeFewClusters) {
  EXPECT_TRUE(find_clusters(weigh(std::vector<float>{})).centroids.empty());
  EXPECT_TRUE(find_clusters(weigh(std::vector<float>{NAN})).centroids.empty());
  EXPECT_EQ(find_clusters(weigh(std::vector<float>{3, 3, 3})).centroids, (std::vector<double>{3}));
  EXPECT_EQ(find_clusters(weigh(std::vector<float>{3, 4})).centroids, (std::vector<double>{3, 4}));
}

TEST(Combinations, EveryInputShowsExactlyOne) {
  Random random(9);
  for (int trial = 0; trial < 20; ++trial) {
    SpacePtr space = made_up_space({6});
    std::vector<QuantisedUnit> units;
    double all = 1;
    for (int64_t u = 0; u < 4; ++u) {
      std::set<double> centroids;
      while (centroids.size() < 1 + random.below(4)) centroids.insert(std::round(random.normal() * 4) / 4);
      units.push_back({u, {{centroids.begin(), centroids.end()}, 0}});
      all *= double(centroids.size());
    }
    Idc criterion(space, 0, units);
    EXPECT_EQ(criterion.total(), all);
    UnitBatch batch = random_values(*space, 200, uint64_t(trial), false);
    for (int64_t row = 0; row < batch.count(); ++row) {
      for (int64_t u = 0; u < 6; ++u) batch.input(row)[u] = std::round(batch.input(row)[u] * 8) / 8;  // ties
      // The combinations whose centroids are all nearest, counted over the whole product; of ties the lower counts.
      int64_t nearest = 0;
      std::vector<size_t> digits(4);
      for (;;) {
        bool all_nearest = true;
        for (size_t u = 0; u < 4; ++u) {
          const auto& centroids = units[u].clusters.centroids;
          const double value = batch.input(row)[u], own = std::abs(centroids[digits[u]] - value);
          for (size_t c = 0; c < centroids.size(); ++c) {
            const double other = std::abs(centroids[c] - value);
            if (other < own || (other == own && c < digits[u])) all_nearest = false;
          }
        }
        if (all_nearest) {
          ++nearest;
          std::string expected;
          for (size_t digit : digits) expected.push_back(char(digit));
          EXPECT_EQ(criterion.pattern(batch, row), expected);
        }
        size_t u = 0;
        while (u < 4 && ++digits[u] == units[u].clusters.centroids.size()) digits[u++] = 0;
        if (u == 4) break;
      }
      EXPECT_EQ(nearest, 1);
    }
    auto tally = tally_of(criterion, batch);
    int64_t counted = 0;
    for (const auto& [pattern, seen] : dynamic_cast<const PatternTally&>(*tally).seen) counted += seen.count;
    EXPECT_EQ(counted, batch.count());
  }
}

TEST(Combinations, MoreThanNumbersCanCountAreNoTrouble) {
  SpacePtr space = made_up_space({700});
  std::vector<QuantisedUnit> units;
  for (int64_t u = 0; u < 700; ++u) units.push_back({u, {{0, 0.5, 1, 1.5}, 0}});
  Idc criterion(space, 0, units);
  UnitBatch batch = random_values(*space, 30, 2);
  Figure figure = criterion.figure(*tally_of(criterion, batch));
  EXPECT_EQ(figure.covered, 30);
  EXPECT_TRUE(std::isfinite(figure.total));
  EXPECT_GE(figure.value, 0);
  units.resize(60);
  EXPECT_NEAR(Idc(space, 0, units).total(), std::pow(4.0, 60), 1e20);
}

TEST(Combinations, ZerosAsAskedFor) {
  std::vector<float> values(50, 0.0f);
  for (int i = 0; i < 30; ++i) values.push_back(float(1 + 0.004 * i)), values.push_back(float(5 + 0.004 * i));
  EXPECT_EQ(quantise(0, values).clusters.centroids.size(), 3u);
  QuantisedUnit apart = quantise(0, values, {true});
  EXPECT_EQ(apart.clusters.centroids.size(), 3u);
  EXPECT_EQ(apart.clusters.centroids[0], 0);
  QuantisedUnit published = quantise(0, values, {false, true, true});
  EXPECT_EQ(published.clusters.centroids, (std::vector<double>{1.06, 5.06}));
  values.assign(50, 0.0f);
  for (int i = 0; i < 9; ++i) values.push_back(float(i));
  EXPECT_EQ(quantise(0, values, {false, true, true}).clusters.centroids, (std::vector<double>{0}));
  EXPECT_EQ(quantise(0, std::vector<float>(9, 2.0f)).clusters.centroids, (std::vector<double>{2}));
}

}  // namespace
}  // namespace netmend::observers
