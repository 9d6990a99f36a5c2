// Max pooling by own loops: LibTorch's takes longer than the convolution before it. For float and double on a CPU; the
// callers fall back to LibTorch for everything else, and the tests compare the two.
#pragma once

#include <ATen/ATen.h>

#include "ops/window.h"

namespace netmend::ops {

/// Batch × channels × one to three spatial axes, in a type and place that the loops know.
bool suits_own_max_pool(const at::Tensor& x);

/// The largest element of each window; NaN wins, as in LibTorch. Channels-last stays channels-last.
at::Tensor max_pool(const at::Tensor& x, const Window& window);
/// The same with a gradient, which goes to the first element of a window that equals its maximum.
at::Tensor max_pool_tracked(const at::Tensor& x, const Window& window);
/// Position of that element in its plane of spatial sizes, row by row; −1 for a window that holds only padding.
at::Tensor max_pool_positions(const at::Tensor& x, const Window& window);

}  // namespace netmend::ops
