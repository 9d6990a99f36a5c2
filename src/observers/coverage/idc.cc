#include "observers/coverage/idc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "observers/coverage/materials.h"

namespace netmend::observers {
namespace {

/// As the authors' program does it.
Clusters published_clusters(const WeightedValues& data, int64_t clusters) {
  double count = 0;
  for (double weight : data.weights) count += weight;
  if (count < 10 || data.values.size() < 2) return {{0.0}, 0};
  Clusters best;
  best.silhouette = -INFINITY;
  const int64_t least = clusters > 0 ? clusters : 2, most = clusters > 0 ? clusters : 4;
  for (int64_t k = std::min<int64_t>(least, int64_t(data.values.size()));
       k <= std::min<int64_t>(most, int64_t(data.values.size())); ++k) {
    std::vector<size_t> starts = cut_into(data, k);
    if (double score = silhouette(data, starts); score >= best.silhouette) best = {means_of(data, starts), score};
  }
  for (double& centroid : best.centroids) centroid = std::round(centroid * 100) / 100;
  return best;
}

}  // namespace

QuantisedUnit quantise(int64_t unit, std::span<const float> values, const QuantiseOptions& options) {
  WeightedValues data = weigh(values);
  bool had_zeros = false;
  if (options.without_zeros || options.zero_cluster)
    if (auto zero = std::find(data.values.begin(), data.values.end(), 0.0); zero != data.values.end()) {
      had_zeros = true;
      data.weights.erase(data.weights.begin() + (zero - data.values.begin()));
      data.values.erase(zero);
    }
  if (options.as_published) return {unit, published_clusters(data, options.clusters)};
  const int64_t least = std::min<int64_t>(options.clusters, int64_t(data.values.size()));
  Clusters found = least > 1 ? Clusters{means_of(data, cut_into(data, least)), 0} : find_clusters(data);
  if (had_zeros && options.zero_cluster) {
    found.centroids.push_back(0);
    std::sort(found.centroids.begin(), found.centroids.end());
    found.centroids.erase(std::unique(found.centroids.begin(), found.centroids.end()), found.centroids.end());
  }
  return {unit, std::move(found)};
}

Idc::Idc(SpacePtr space, size_t layer, std::vector<QuantisedUnit> units)
    : space_(std::move(space)), layer_(layer), read_(layer), units_(std::move(units)) {
  std::erase_if(units_, [](const QuantisedUnit& unit) { return unit.clusters.centroids.empty(); });
}

std::string Idc::combination(const float* values) const {
  std::string clusters;
  for (const QuantisedUnit& unit : units_) {
    const double value = values[unit.unit];
    if (!std::isfinite(value)) return {};
    clusters.push_back(char(nearest_centroid(unit.clusters.centroids, value)));
  }
  return clusters;
}

std::string Idc::pattern(const UnitBatch& batch, int64_t row) const {
  return combination(batch.input(row) + space_->first(read_));
}

std::optional<int64_t> Idc::reach_by_input(const UnitBatch& batch, Reached& reached) const {
  std::unordered_map<std::string, int64_t> numbers;
  for (int64_t row = 0; row < batch.count(); ++row) {
    if (std::string shown = pattern(batch, row); !shown.empty())
      reached.goals.push_back(numbers.try_emplace(shown, int64_t(numbers.size())).first->second);
    reached.end_input();
  }
  return int64_t(numbers.size());
}

std::vector<Parameter> Idc::parameters() const {
  return {{"m", double(units_.size())}, {"layer", 0, space_->layers()[layer_].name}};
}

double Idc::total() const {
  double product = 1;
  for (const QuantisedUnit& unit : units_) product *= double(unit.clusters.centroids.size());
  return std::isfinite(product) ? product : std::numeric_limits<double>::max();
}

namespace {

std::vector<int64_t> by_importance(const std::vector<double>& importance) {
  std::vector<int64_t> order(importance.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return importance[size_t(a)] > importance[size_t(b)]; });
  return order;
}

/// Of training inputs; where units are important for a class, of those that are rightly predicted as it.
std::vector<float> values_of(const UnitBatch& traces, int64_t unit, int64_t of_class) {
  std::vector<float> values;
  values.reserve(traces.rows.size());
  for (int64_t row = 0; row < traces.count(); ++row) {
    const SampleRow& about = traces.rows[size_t(row)];
    if (of_class < 0 || (about.right == SampleRow::kRight && about.predicted == double(of_class)))
      values.push_back(traces.input(row)[unit]);
  }
  return values;
}

/// The authors' program measures at the layer before, by the same numbers. False where that has too few units.
bool read_before(Idc& criterion, const UnitSpace& space, size_t layer) {
  if (layer == 0) return false;
  for (const QuantisedUnit& unit : criterion.units())
    if (unit.unit >= space.units(layer - 1)) return false;
  criterion.read_at(layer - 1);
  return true;
}

/// One criterion for each m.
MadeCriteria make_idc(const CriterionMaterials& m) {
  MadeCriteria made;
  if (int64_t(m.importance.size()) != m.space->units(m.layer)) {
    made.skipped = "looks at whole units: leave out --unit element";
    return made;
  }
  const std::vector<int64_t> order = by_importance(m.importance);
  std::vector<QuantisedUnit> units;
  const std::string& op = m.space->layers()[m.layer].op;
  const bool published = m.published == Published::kDeepImportance;
  QuantiseOptions options{m.zero_cluster, published && (op == "Gemm" || op == "MatMul"), published};
  int64_t last = 0;
  for (int64_t asked : m.important) {
    const int64_t there = std::min<int64_t>(asked, int64_t(order.size()));
    if (there < asked)
      made.notes.push_back(
          fmt::format("{} has {} units: m = {} becomes {}", m.space->layers()[m.layer].name, there, asked, there));
    if (there == last) continue;
    last = there;
    while (int64_t(units.size()) < there) {
      const int64_t unit = order[units.size()];
      units.push_back(quantise(unit, values_of(*m.traces, unit, m.of_class), options));
    }
    auto criterion = std::make_shared<Idc>(m.space, m.layer, units);
    if (criterion->units().empty()) {
      made.skipped = "no important unit has a finite value on training data";
      return made;
    }
    if (published && !read_before(*criterion, *m.space, m.layer))
      made.notes.push_back("IDC is measured at its own layer: the one before has too few units for the published way");
    made.list.push_back(criterion);
    made.important.push_back(criterion);
  }
  return made;
}

}  // namespace

CriterionRow idc_row() {
  return {.name = "IDC",
          .full_name = "importance-driven coverage",
          .asks = "combinations of what the most important units do",
          .reference = "Gerasimou, Eniser, Sen, Cakan: Importance-Driven Deep Learning System Testing, ICSE 2020",
          .needs = {.training = true, .importance = true},
          .memory = CriterionRow::Memory::kPerInput,
          .make = make_idc};
}

}  // namespace netmend::observers
