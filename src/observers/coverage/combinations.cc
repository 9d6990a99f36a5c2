#include "observers/coverage/combinations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace netmend::observers {
namespace {

/// As the authors' program does it.
Clusters published_clusters(const WeightedValues& data) {
  double count = 0;
  for (double weight : data.weights) count += weight;
  if (count < 10 || data.values.size() < 2) return {{0.0}, 0};
  Clusters best;
  best.silhouette = -INFINITY;
  for (int64_t k = 2; k <= std::min<int64_t>(4, int64_t(data.values.size())); ++k) {
    std::vector<size_t> starts = cut_into(data, k);
    if (double score = silhouette(data, starts); score >= best.silhouette) best = {means_of(data, starts), score};
  }
  for (double& centroid : best.centroids) centroid = std::round(centroid * 100) / 100;
  return best;
}

}  // namespace

QuantisedUnit quantise(int64_t unit, std::span<const float> values, const QuantiseOptions& options) {
  WeightedValues data = weigh(values);
  const bool published = options.published == Published::kDeepImportance;
  bool had_zeros = false;
  if (published || options.zero_cluster)
    if (auto zero = std::find(data.values.begin(), data.values.end(), 0.0); zero != data.values.end()) {
      had_zeros = true;
      data.weights.erase(data.weights.begin() + (zero - data.values.begin()));
      data.values.erase(zero);
    }
  if (published) return {unit, published_clusters(data)};
  Clusters found = find_clusters(data);
  if (had_zeros) {
    found.centroids.push_back(0);
    std::sort(found.centroids.begin(), found.centroids.end());
    found.centroids.erase(std::unique(found.centroids.begin(), found.centroids.end()), found.centroids.end());
  }
  return {unit, std::move(found)};
}

ImportanceCoverage::ImportanceCoverage(SpacePtr space, size_t layer, std::vector<QuantisedUnit> units)
    : space_(std::move(space)), layer_(layer), read_(layer), units_(std::move(units)) {
  std::erase_if(units_, [](const QuantisedUnit& unit) { return unit.clusters.centroids.empty(); });
}

std::string ImportanceCoverage::combination(const float* values) const {
  std::string clusters;
  for (const QuantisedUnit& unit : units_) {
    const double value = values[unit.unit];
    if (!std::isfinite(value)) return {};
    clusters.push_back(char(nearest_centroid(unit.clusters.centroids, value)));
  }
  return clusters;
}

std::string ImportanceCoverage::pattern(const UnitBatch& batch, int64_t row) const {
  return combination(batch.input(row) + space_->first(read_));
}

std::vector<Parameter> ImportanceCoverage::parameters() const {
  return {{"m", double(units_.size())}, {"layer", 0, space_->layers()[layer_].name}};
}

double ImportanceCoverage::total() const {
  double product = 1;
  for (const QuantisedUnit& unit : units_) product *= double(unit.clusters.centroids.size());
  return std::isfinite(product) ? product : std::numeric_limits<double>::max();
}

}  // namespace netmend::observers
