// A network that is trained by loops of our own, sixteen inputs at a time, a lane of the core's vectors each: forward
// and back without LibTorch's autograd, whose operators take their time to start, and without its layouts, whose
// conversions take longer than the arithmetic where channels are few. Its gradients are those of the executor to
// rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "model/graph.h"
#include "ops/input_lanes.h"
#include "training/loss.h"
#include "training/parameters.h"
#include "training/samples.h"

namespace netmend::training {

class LaneNetwork {
 public:
  /// Null, and why, when a node is not among the operators that lanes know, or the core's vectors are too short. An
  /// input has the sizes `shape`, without the axis of inputs.
  static std::unique_ptr<LaneNetwork> make(const model::Graph& graph, model::ValueId wanted,
                                           const Parameters& parameters, at::IntArrayRef shape, std::string& refusal,
                                           ops::Vectors vectors = ops::widest_vectors());
  ~LaneNetwork();

  /// Forward and back over some inputs of a batch of `total`. `gradient` is flat, as long as the parameters, and
  /// filled. Any thread may call; batch norm all-reduces with the other parts by `ops::seat()` and changes the running
  /// statistics.
  LossSum gradients(const Rows& rows, const LossForm& loss, int64_t total, uint64_t seed, Parameters& parameters,
                    at::Tensor& gradient);

 private:
  struct Impl;
  explicit LaneNetwork(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::training
