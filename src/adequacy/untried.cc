#include "adequacy/untried.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace netmend::adequacy {

using observers::Idc;
using observers::QuantisedUnit;
using observers::UnitBatch;

namespace {

constexpr size_t kSamples = 12;

void note(std::vector<int64_t>& samples, int64_t sample) {
  if (samples.size() < kSamples) samples.push_back(sample);
}

}  // namespace

std::vector<Region> find_regions(const Idc& coverage, const UnitBatch& training, const UnitBatch& tests) {
  std::vector<Region> all;
  for (size_t rank = 0; rank < coverage.units().size(); ++rank) {
    const QuantisedUnit& unit = coverage.units()[rank];
    const auto& centroids = unit.clusters.centroids;
    std::vector<Region> regions;
    for (size_t c = 0; c < centroids.size(); ++c)
      regions.push_back({unit.unit, int64_t(rank) + 1, int64_t(c), int64_t(centroids.size()), INFINITY, -INFINITY});
    for (int64_t row = 0; row < training.count(); ++row) {
      const double value = training.input(row)[unit.unit];
      if (!std::isfinite(value)) continue;
      Region& region = regions[observers::nearest_centroid(centroids, value)];
      region.low = std::min(region.low, value), region.high = std::max(region.high, value);
      ++region.training;
      note(region.samples, training.rows[size_t(row)].sample);
    }
    for (int64_t row = 0; row < tests.count(); ++row)
      if (const double value = tests.input(row)[unit.unit]; std::isfinite(value))
        ++regions[observers::nearest_centroid(centroids, value)].tests;
    for (Region& region : regions)
      if (region.training == 0) region.low = region.high = centroids[size_t(region.cluster)];
    all.insert(all.end(), regions.begin(), regions.end());
  }
  return all;
}

Combinations find_combinations(const Idc& coverage, const UnitBatch& training, const UnitBatch& tests) {
  std::map<std::string, Combination> seen;
  for (int64_t row = 0; row < training.count(); ++row) {
    std::string clusters = coverage.combination(training.input(row));
    if (clusters.empty()) continue;
    Combination& combination = seen[clusters];
    combination.clusters = clusters;
    ++combination.training;
    note(combination.samples, training.rows[size_t(row)].sample);
  }
  std::set<std::string> tried;
  for (int64_t row = 0; row < tests.count(); ++row)
    if (std::string clusters = coverage.combination(tests.input(row)); !clusters.empty()) tried.insert(clusters);
  Combinations found{int64_t(seen.size()), int64_t(tried.size())};
  for (auto& [clusters, combination] : seen) {
    if (tried.count(clusters))
      ++found.both;
    else
      found.untried.push_back(std::move(combination));
  }
  std::stable_sort(found.untried.begin(), found.untried.end(),
                   [](const Combination& a, const Combination& b) { return a.training > b.training; });
  return found;
}

}  // namespace netmend::adequacy
