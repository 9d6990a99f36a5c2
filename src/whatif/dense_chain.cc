#include "whatif/dense_chain.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "ops/op.h"

namespace netmend::whatif {
namespace {

using model::Node;
using model::ValueId;

constexpr int64_t kLane = 16;                 ///< floats of the widest vector
constexpr int64_t kMostWeights = 256 * 1024;  ///< of a layer: what stays in the second-level cache

/// Inputs × units, or undefined when the node is no such product with a constant.
at::Tensor matrix_of(const model::Graph& graph, const Node& node) {
  const ops::NodeView view(graph, node);
  const bool gemm = node.op == "Gemm";
  if ((!gemm && node.op != "MatMul") || !node.domain.empty()) return {};
  if (gemm && (view.integer("transA", 0) != 0 || view.real("alpha", 1) != 1 || view.real("beta", 1) != 1)) return {};
  at::Tensor weight = view.constant(1);
  if (!weight.defined() || weight.dim() != 2 || weight.scalar_type() != at::kFloat || weight.numel() > kMostWeights)
    return {};
  return gemm && view.integer("transB", 0) != 0 ? weight.t() : weight;
}

/// One number for each unit, or undefined.
at::Tensor bias_of(const model::Graph& graph, ValueId id, int64_t units) {
  const at::Tensor bias = graph.constant(id);
  const bool fits = bias.defined() && bias.scalar_type() == at::kFloat && bias.dim() == 1 && bias.numel() == units;
  return fits ? bias : at::Tensor();
}

}  // namespace

std::unique_ptr<DenseChain> DenseChain::find(const model::Graph& graph, ValueId from, ValueId wanted,
                                             ops::Vectors vectors) {
  if (vectors == ops::Vectors::kNone) return nullptr;
  const std::vector<std::vector<int>> used_by = model::consumers(graph);
  auto chain = std::make_unique<DenseChain>();
  chain->vectors_ = vectors;
  for (ValueId at = from; at != wanted;) {
    if (used_by[size_t(at)].size() != 1) return nullptr;
    const Node& node = graph.nodes[size_t(used_by[size_t(at)][0])];
    if (node.inputs.empty() || node.inputs[0] != at || node.outputs.empty()) return nullptr;
    if (node.op == "Relu" && node.domain.empty()) {
      (chain->layers_.empty() ? chain->relu_ : chain->layers_.back().relu) = true;
    } else {
      const at::Tensor weight = matrix_of(graph, node);
      if (!weight.defined()) return nullptr;
      Layer layer;
      layer.inputs = weight.size(0), layer.units = weight.size(1);
      if (!chain->layers_.empty() && chain->layers_.back().units != layer.inputs) return nullptr;
      layer.width = (layer.units + kLane - 1) / kLane * kLane;
      layer.weights = at::zeros({layer.inputs, layer.width}, at::kFloat);
      layer.weights.narrow(1, 0, layer.units).copy_(weight);
      layer.bias = at::zeros({layer.width}, at::kFloat);
      if (node.inputs.size() > 2 && node.inputs[2] != model::kAbsent) {
        const at::Tensor bias = bias_of(graph, node.inputs[2], layer.units);
        if (!bias.defined()) return nullptr;
        layer.bias.narrow(0, 0, layer.units).copy_(bias);
      }
      chain->counted_.resize(std::max(chain->counted_.size(), size_t(layer.inputs)));
      chain->layers_.push_back(std::move(layer));
    }
    at = node.outputs[0];
  }
  if (chain->layers_.empty()) return nullptr;
  std::iota(chain->counted_.begin(), chain->counted_.end(), 0);
  return chain;
}

bool DenseChain::suits(const at::Tensor& rows) const {
  return rows.dim() == 2 && rows.size(1) == layers_[0].inputs && rows.scalar_type() == at::kFloat &&
         rows.device().is_cpu();
}

at::Tensor DenseChain::run(const at::Tensor& rows) const {
  const int64_t count = rows.size(0);
  at::Tensor x = relu_ ? at::relu(rows).contiguous() : rows.contiguous();
  std::vector<int64_t> places;
  for (const Layer& layer : layers_) {
    const at::Tensor y = at::empty({count, layer.width}, at::kFloat).copy_(layer.bias);
    places.resize(size_t(layer.inputs));
    for (size_t i = 0; i < places.size(); ++i) places[i] = int64_t(i) * layer.width;
    ops::WindowSums sums;
    sums.a = x.data_ptr<float>(), sums.a_row = x.size(1), sums.a_at = counted_.data();
    sums.b = layer.weights.data_ptr<float>(), sums.b_at = places.data();
    sums.terms = layer.inputs, sums.from = y.data_ptr<float>();
    sums.c = y.data_ptr<float>(), sums.c_row = layer.width;
    sums.rows = count, sums.columns = layer.width / kLane;
    sums.relu = layer.relu;
    ops::window_sums(vectors_, sums);
    x = y;
  }
  return x.narrow(1, 0, layers_.back().units);
}

}  // namespace netmend::whatif
