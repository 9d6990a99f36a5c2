// Fresh weights. A number depends on the seed, the tensor's number and the position in it alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "zoo/names.h"

namespace netmend::zoo {

enum class Scheme {
  kGlorot,   ///< uniform, ±√(6 / (in + out)) (Glorot and Bengio 2010)
  kHe,       ///< normal, deviation √(2 / in) (He et al. 2015)
  kUniform,  ///< ±0.05 whatever the layer
  kNormal,   ///< deviation 0.05 whatever the layer
};
/// Throws InputError that lists them.
Scheme parse_scheme(const std::string& name);

/// How many numbers feed a unit, and how many units a number feeds.
struct Fan {
  int64_t in = 1, out = 1;
};
/// Of a convolution's weight: units × channels × window.
Fan conv_fan(at::IntArrayRef shape);

/// A float tensor; `stream` tells the tensors of one model apart.
at::Tensor fresh_weight(at::IntArrayRef shape, Fan fan, Scheme scheme, uint64_t seed, uint64_t stream);
/// A table of word vectors: uniform ±0.25, as sentence networks use since Kim 2014.
at::Tensor fresh_embedding(at::IntArrayRef shape, uint64_t seed, uint64_t stream);

}  // namespace netmend::zoo
