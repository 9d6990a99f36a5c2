// Which elements of a layer's value stand for positions that count.
#pragma once

#include "model/layer.h"

namespace netmend::model {

/// `mask` (bool, inputs × length) spread over the axis of `tap` that counts the same positions, in the shape of `tap`;
/// undefined when there is none.
at::Tensor spread_mask(const Layer& layer, const at::Tensor& tap, const at::Tensor& mask);

}  // namespace netmend::model
