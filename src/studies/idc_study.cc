#include "studies/idc_study.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"

namespace netmend::studies {

using observers::QuantisedUnit;
using observers::SampleRow;

IdcStudy::IdcStudy(const LayerChain& chain, const observers::UnitBatch& training, int64_t classes)
    : chain_(chain), training_(training), right_(size_t(classes) + 1), all_(size_t(classes) + 1) {
  for (int64_t row = 0; row < training.count(); ++row) {
    const SampleRow& about = training.rows[size_t(row)];
    for (size_t group : {size_t(about.label), size_t(classes)}) {
      all_[group].push_back(row);
      if (about.right == SampleRow::kRight) right_[group].push_back(row);
    }
  }
}

std::vector<int64_t> by_relevance(const Relevance& relevance, int64_t of_class) {
  at::Tensor sums = of_class < 0 ? relevance.sum(0) : relevance[of_class];
  at::Tensor order = std::get<1>(at::sort(sums, true, 0, true)).contiguous();
  return {order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + order.numel()};
}

const QuantisedUnit& IdcStudy::quantised(size_t layer, int64_t unit, int64_t of_class, const IdcForm& form) {
  const bool zeros_out =
      form.zeros == IdcForm::kOut || (form.zeros == IdcForm::kOutOfDense && chain_.layers()[layer].dense);
  const std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}", layer, unit, of_class, form.rounded, zeros_out,
                                      form.clusters, form.right_only);
  if (auto found = known_.find(key); found != known_.end()) return found->second;
  const auto& groups = form.right_only ? right_ : all_;
  const int64_t at = chain_.space()->first(chain_.place(layer)) + unit;
  std::vector<float> values;
  for (int64_t row : of_class < 0 ? groups.back() : groups[size_t(of_class)])
    values.push_back(training_.input(row)[at]);
  observers::QuantiseOptions how;
  how.without_zeros = zeros_out, how.as_published = form.rounded, how.clusters = form.clusters;
  return known_.emplace(key, observers::quantise(unit, values, how)).first->second;
}

std::vector<QuantisedUnit> IdcStudy::units(size_t layer, const Relevance& relevance, int64_t of_class, int64_t m,
                                           const IdcForm& form) {
  std::vector<int64_t> order = by_relevance(relevance, of_class);
  order.resize(size_t(std::min<int64_t>(m, int64_t(order.size()))));
  std::vector<int64_t> clusters_of = order;
  if (form.swapped) std::sort(clusters_of.begin(), clusters_of.end());
  std::vector<QuantisedUnit> units;
  for (size_t i = 0; i < order.size(); ++i)
    units.push_back({order[i], quantised(layer, clusters_of[i], of_class, form).clusters});
  return units;
}

bool IdcStudy::readable(size_t layer, const std::vector<QuantisedUnit>& units, const IdcForm& form) const {
  if (!form.layer_before) return true;
  if (layer == 0) return false;
  const ChainLayer& before = chain_.layers()[layer - 1];
  // The flattening of maps has far more values than the layer before has maps.
  const int64_t there = before.flatten ? INT64_MAX : before.units;
  return std::all_of(units.begin(), units.end(), [&](const QuantisedUnit& unit) { return unit.unit < there; });
}

Combinations::Combinations(const LayerChain& chain, std::vector<QuantisedUnit> units)
    : criterion_(chain.space(), 0, std::move(units)), all_(criterion_.total()) {}

void Combinations::add(const at::Tensor& values) {
  for (int64_t row = 0; row < values.size(0); ++row)
    if (std::string one = criterion_.combination(values.data_ptr<float>() + row * values.size(1)); !one.empty())
      seen_.insert(std::move(one));
}

}  // namespace netmend::studies
