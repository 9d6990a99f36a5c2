// A trained model back at the start: fresh weights for whatever operators hold them.
#pragma once

#include <string>

#include "model/graph.h"

namespace netmend::training {

/// Every parameter (executor::find_parameters) by its role: weights by the scheme of zoo/init.h, biases and offsets 0,
/// scales 1, running means 0 and variances 1. Throws InputError: an unknown scheme, quantised weights.
void reinitialise(model::Graph& graph, const std::string& scheme, uint64_t seed);

}  // namespace netmend::training
