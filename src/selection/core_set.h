// CoreSet: inputs that leave no other far from all that is known, by the values of a layer. Each choice is the input
// farthest from everything known and chosen so far (greedy k-centre). Sener, Savarese: Active Learning for
// Convolutional Neural Networks: A Core-Set Approach, ICLR 2018.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace netmend::selection {

/// `count` rows of `pool` (float inputs × units), in the order they are chosen; of equally far ones the earlier.
/// `known` may be empty or undefined: then the row nearest to the pool's mean comes first. Rows with NaN or Inf
/// are never chosen, so that fewer may come back.
std::vector<size_t> core_set(const at::Tensor& pool, const at::Tensor& known, int64_t count, int jobs = 0);

}  // namespace netmend::selection
