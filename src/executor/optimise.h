// Rewrites of a graph that is about to run without gradients. Every one keeps the values that are wanted, to rounding.
#pragma once

#include "executor/executor.h"
#include "model/graph.h"

namespace netmend::executor {

/// Computes whatever depends on constants alone, folds batch norm into the convolution or product before it, and pools
/// before relu.
void optimise(model::Graph& graph, const Request& request);

/// Only the first of these: nodes whose inputs are all constants become constants. Used by the layer finder too.
void fold_constants(model::Graph& graph, const Request& request);

}  // namespace netmend::executor
