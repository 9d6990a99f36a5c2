// Small random networks for tests, with or without biases.
#pragma once

#include <ATen/ATen.h>

#include "base/random.h"
#include "executor/layers.h"
#include "zoo/builder.h"

namespace netmend::explain {

inline at::Tensor random_tensor(std::vector<int64_t> shape, uint64_t seed) {
  Random random(seed, 7);
  at::Tensor t = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = random.normal();
  return t;
}

/// All biases drawn anew.
inline void give_biases(model::Graph& graph, uint64_t seed) {
  for (auto& [id, constant] : graph.constants)
    if (constant.value.dim() == 1 && constant.value.is_floating_point() &&
        graph.values[size_t(id)].name.ends_with("bias"))
      graph.replace(id, random_tensor({constant.value.numel()}, seed + uint64_t(id)).to(at::kFloat) * 0.3);
}

/// Rectified, pooled, joined and added up in ways that depend on the seed: batch × 2 × 8 × 8 in, 4 classes out.
inline model::Graph random_network(uint64_t seed) {
  Random random(seed);
  zoo::Builder b("random", zoo::Scheme::kHe, seed);
  using Ints = std::vector<int64_t>;
  model::ValueId x = b.input("x", {2, 8, 8});
  if (random.below(2)) {  // as exporters of channels-last networks write it
    x = b.plain("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}});
    x = b.plain("Transpose", {x}, {{"perm", Ints{0, 3, 1, 2}}});
  }
  int64_t channels = 3 + int64_t(random.below(3));
  x = b.relu(b.conv("conv1", x, 2, channels, {3, 1, 1}));
  for (int block = 0; block < 2; ++block) {
    std::string name = "block" + std::to_string(block);
    switch (random.below(5)) {
      case 0:
        x = b.relu(b.add(name, x, b.conv(name + "c", x, channels, channels, {3, 1, 1})));
        break;
      case 1:
        x = b.plain("Concat", {x, b.relu(b.conv(name + "c", x, channels, 2, {1, 1, 0}))}, {{"axis", int64_t(1)}});
        channels += 2;
        break;
      case 2:
        x = b.plain("LeakyRelu", {b.conv(name + "c", x, channels, channels, {3, 1, 1})});
        break;
      case 3:
        x = b.plain("AveragePool", {x},
                    {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}});
        break;
      default:
        x = b.plain("Max", {x, b.conv(name + "c", x, channels, channels, {3, 1, 1})});
        break;
    }
  }
  x = random.below(2) ? b.max_pool(x)
                      : b.plain("AveragePool", {x}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  x = b.relu(b.dense("fc1", b.flatten(x), channels * 16, 6));
  return b.finish(b.dense("fc2", x, 6, 4), "y", 4);
}

inline executor::Head head_of(const model::Graph& graph) { return executor::find_head(graph, graph.outputs[0]); }

}  // namespace netmend::explain
