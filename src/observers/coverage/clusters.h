// Values of one unit in clusters: k-means on a line, with the number of clusters that the silhouette likes best.
// Both are exact: on sorted values clusters are intervals, so the best cut is found by dynamic programming, and sums of
// distances come from running sums. Rousseeuw: Silhouettes, 1987.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace netmend::observers {

/// Different values, ascending, and how often each occurs.
struct WeightedValues {
  std::vector<double> values;
  std::vector<double> weights;
};
/// Values that are not finite are left out.
WeightedValues weigh(std::span<const float> values);

/// Where clusters begin among the values, first 0; the best cut into exactly k. Of equally good ones the one whose
/// later clusters begin first. Precondition: k ≤ values.
std::vector<size_t> cut_into(const WeightedValues& data, int64_t k);
/// Mean over all inputs of (b − a) / max(a, b); an input alone in its cluster counts 0.
double silhouette(const WeightedValues& data, const std::vector<size_t>& starts);
std::vector<double> means_of(const WeightedValues& data, const std::vector<size_t>& starts);

struct Clusters {
  std::vector<double> centroids;  ///< ascending
  double silhouette = 0;
};
/// The number of clusters in 2 … most with the largest silhouette, the smaller of equal ones. One cluster when there
/// are fewer than two different values, none without values.
Clusters find_clusters(const WeightedValues& data, int64_t most = 4);

/// The nearest centroid, the lower of equally near ones. Precondition: there is one.
size_t nearest_centroid(std::span<const double> centroids, double value);

}  // namespace netmend::observers
