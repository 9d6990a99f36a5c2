// Which networks can be run many at once, and how: a chain of convolutions and dense layers, each with the relu and the
// pooling behind it as one block.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.h"

namespace netmend::training {

/// Height and width.
struct Sides {
  int64_t y = 1, x = 1;
  int64_t area() const { return y * x; }
};

/// A convolution or a dense layer (an image of one pixel, a window of one pixel, its inputs as channels).
struct LockstepBlock {
  std::string name;  ///< of the node
  model::ValueId weight = model::kAbsent, bias = model::kAbsent;
  bool dense = true;
  bool inputs_first = false;  ///< a dense layer's matrix is inputs × units
  int64_t channels = 0, units = 0;
  Sides size, kernel, stride;    ///< of what comes in; the window
  Sides begin{0, 0}, end{0, 0};  ///< padding
  Sides made;                    ///< by the convolution
  Sides pool, pool_stride, out;  ///< 1 × 1 for none; what comes out in the end
  bool relu = false;

  Sides padded() const { return {size.y + begin.y + end.y, size.x + begin.x + end.x}; }
  int64_t products() const { return channels * kernel.area(); }  ///< for one output
};

struct LockstepPlan {
  std::vector<LockstepBlock> blocks;
  std::string refusal;  ///< why there is none: the first node that lockstep does not know; "" otherwise
};
/// From the input, whose sizes behind the axis of inputs are `shape`, to the wanted value.
LockstepPlan plan_lockstep(const model::Graph& graph, model::ValueId wanted, at::IntArrayRef shape);

}  // namespace netmend::training
