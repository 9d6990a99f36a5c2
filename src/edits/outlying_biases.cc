#include "edits/outlying_biases.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "edits/operations.h"

namespace netmend::edits {
namespace {

constexpr int64_t kFewest = 4;   ///< biases, for a median to mean anything
constexpr double kFar = 12;      ///< standard deviations, estimated by the median
constexpr double kBeyond = 3;    ///< times the farthest of the others
constexpr double kDrowned = 50;  ///< times all that the weights of a unit can bring of inputs of size 1

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + int64_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// What the weights of each unit can bring of inputs of size 1, or nothing where they are not stored by unit.
std::vector<double> reach_of(const model::Graph& graph, const model::Layer& layer) {
  at::Tensor weight = graph.constant(layer.weight);
  if (!weight.defined() || !weight.is_floating_point() || weight.dim() < 2) return {};
  // `weight_axis` counts on what the operator reads; a transposed constant has its units on another axis.
  int64_t axis = (layer.weight_axis + weight.dim()) % weight.dim();
  if (layer.weight != layer.weight_input)
    for (axis = 0; axis + 1 < weight.dim() && weight.size(axis) != layer.units;) ++axis;
  if (weight.size(axis) != layer.units) return {};
  at::Tensor sums = weight.transpose(0, axis).flatten(1).to(at::kDouble).norm(2, 1).contiguous();
  const double root = std::sqrt(double(weight.numel() / layer.units));
  std::vector<double> reach(sums.data_ptr<double>(), sums.data_ptr<double>() + layer.units);
  for (double& one : reach) one *= root;
  return reach;
}

}  // namespace

std::vector<OutlyingBias> find_outlying_biases(const model::Graph& graph, const model::Layer& layer) {
  at::Tensor stored = graph.constant(layer.bias);
  if (!stored.defined() || !stored.is_floating_point() || stored.numel() != layer.units || layer.units < kFewest)
    return {};
  stored = stored.flatten().to(at::kDouble).contiguous();
  if (!at::isfinite(stored).all().item<bool>()) return {};
  const std::vector<double> biases(stored.data_ptr<double>(), stored.data_ptr<double>() + layer.units);
  const std::vector<double> reach = reach_of(graph, layer);
  const double middle = median(biases);
  std::vector<double> apart;
  for (double bias : biases) apart.push_back(std::abs(bias - middle));
  const double spread = 1.4826 * median(apart);
  std::vector<int64_t> far;
  for (int64_t u = 0; u < layer.units; ++u) {
    const bool drowned =
        !reach.empty() && reach[size_t(u)] > 0 && std::abs(biases[size_t(u)]) > kDrowned * reach[size_t(u)];
    if (drowned || (spread > 0 && apart[size_t(u)] > kFar * spread)) far.push_back(u);
  }
  if (far.empty()) return {};
  std::vector<double> others;
  for (int64_t u = 0; u < layer.units; ++u)
    if (!std::binary_search(far.begin(), far.end(), u)) others.push_back(biases[size_t(u)]);
  const double usual = others.empty() ? 0 : median(others);
  const double low = others.empty() ? 0 : *std::min_element(others.begin(), others.end()),
               high = others.empty() ? 0 : *std::max_element(others.begin(), others.end());
  const double farthest = std::max(high - usual, usual - low);
  std::vector<OutlyingBias> found;
  for (int64_t u : far) {
    const double bias = biases[size_t(u)];
    if (std::abs(bias - usual) <= kBeyond * farthest) continue;  // the end of a long tail
    try {
      found.push_back({u, bias, low, high, operate(graph, layer, u, {Target::kBias, Change::kSet, usual}, 0)});
    } catch (const InputError&) {  // shared or quantised
    }
  }
  return found;
}

}  // namespace netmend::edits
