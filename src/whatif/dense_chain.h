// What mostly follows a change: dense layers with relu between them, whose products of a few hundred rows by small
// matrices are too small for a BLAS to be at its best.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "model/graph.h"
#include "ops/input_lanes.h"

namespace netmend::whatif {

class DenseChain {
 public:
  /// From a value to another; null where there is anything but relu and products with constants between them, or the
  /// core's vectors are too short.
  static std::unique_ptr<DenseChain> find(const model::Graph& graph, model::ValueId from, model::ValueId wanted,
                                          ops::Vectors vectors = ops::widest_vectors());

  /// Whether these are rows that it can go on from.
  bool suits(const at::Tensor& rows) const;
  at::Tensor run(const at::Tensor& rows) const;

 private:
  struct Layer {
    int64_t inputs = 0, units = 0, width = 0;  ///< `width`: units and what fills the last vector
    at::Tensor weights;                        ///< inputs × width
    at::Tensor bias;
    bool relu = false;  ///< behind it
  };
  std::vector<Layer> layers_;
  std::vector<int64_t> counted_;  ///< 0, 1, 2 …
  bool relu_ = false;             ///< before the first layer
  ops::Vectors vectors_ = ops::Vectors::kNone;
};

}  // namespace netmend::whatif
