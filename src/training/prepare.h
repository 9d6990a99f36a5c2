// What a network is worth knowing before it is trained, and an exact rewrite that makes training it cheaper.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/graph.h"

namespace netmend::training {

/// relu then max-pooling becomes max-pooling then relu wherever nothing else looks between them: the same values and
/// the same gradients, at a quarter of the work.
void pool_before_relu(model::Graph& graph);

struct Work {
  double products = 0;  ///< multiplications that a forward pass needs for one input
};
/// Measured on a few real inputs.
Work measure_work(const model::Graph& graph, model::ValueId wanted, const std::vector<at::Tensor>& inputs);

}  // namespace netmend::training
