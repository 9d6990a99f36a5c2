// A convolution together with the max pooling and relu behind it, as one step for a GPU.
#pragma once

#include "model/graph.h"
#include "ops/op.h"

namespace netmend::ops {

/// The kernel of `conv` followed by `pool` and `relu`, either of which may be null. Convolutions of few channels over
/// small maps, where cuDNN is far from what the GPU can do, run in one kernel of our own; everything else runs node by
/// node.
Kernel prepare_conv_block(const model::Graph& graph, const model::Node& conv, const model::Node* pool,
                          const model::Node* relu);
/// Max pooling of 2×2 without padding, which is what the kernel knows.
bool halves(const NodeView& pool);

}  // namespace netmend::ops
