// The way of a changed unit through a convolution that reads it and the pooling behind, sixteen inputs at a time: a few
// channels' difference is too little work for a library's convolution.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "model/graph.h"
#include "ops/input_lanes.h"

namespace netmend::whatif {

class LanePath {
 public:
  /// Through the convolution that makes `output` and the relu, max pooling and flattening that alone read it.
  /// `kernels`: filters × units × window; `seat`: some inputs' units as the convolution reads them. Null where
  /// something else stands there.
  static std::unique_ptr<LanePath> find(const model::Graph& graph, model::ValueId output, const at::Tensor& kernels,
                                        const at::Tensor& seat, model::ValueId answers);

  /// Where it ends.
  model::ValueId end() const { return end_; }
  /// What the convolution made of a block's inputs, in lanes.
  at::Tensor in_lanes(const at::Tensor& output) const;
  /// The value at the end once `delta` (inputs × units × height × width) is added to the units named, and for each
  /// input the largest absolute value of the convolution.
  at::Tensor run(const at::Tensor& lanes, const at::Tensor& delta, std::span<const int64_t> units,
                 std::vector<float>& largest) const;

 private:
  at::Tensor kernels_;
  ops::Plane in_, made_, pooled_;  ///< of one unit, with its margin; of the convolution; of what is behind it
  int64_t stride_y_ = 1, stride_x_ = 1;
  ops::LanePool pool_;
  bool relu_ = false, flat_ = false;
  model::ValueId end_ = model::kAbsent;
};

}  // namespace netmend::whatif
