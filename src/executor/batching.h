// Most files are exported for a batch of one. Decides, on real inputs, whether a network runs at any batch size, and
// makes it do so where that is right.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "model/graph.h"

namespace netmend::executor {

struct Batching {
  enum Kind {
    kAny,    ///< any number of inputs at once
    kFixed,  ///< exactly `size` at once, as in the file
    kOne,    ///< one input at a time
  } kind = kAny;
  int64_t size = 0;
  std::string note;    ///< one line for the user; empty when there is nothing to say
  model::Graph graph;  ///< the graph to run: constant reshapes and the like generalised
};

/// `inputs`: a few real inputs (8 are enough), one tensor per graph input with the inputs along axis 0. Axis 0 is the
/// batch if it is 1 or symbolic and every wanted value keeps it. The generalised network must give each input the
/// outputs it gets alone, within 1e-5 of their size, in two different orders. Throws InputError when it cannot
/// run at all.
Batching find_batching(const model::Graph& graph, std::span<const at::Tensor> inputs,
                       const std::vector<model::ValueId>& wanted);

}  // namespace netmend::executor
