// What FGSM, BIM and PGD share.
#pragma once

#include "inputs/network.h"

namespace netmend::inputs {

/// The sign of the gradient of the loss against the network's own predictions.
at::Tensor loss_sign(const Network& network, const Originals& originals, const at::Tensor& units);
/// Nearest values in the valid range that differ by at most `eps` from the originals.
at::Tensor within(const at::Tensor& units, const at::Tensor& originals, double eps);
/// `steps` steps of `size` along the sign, each followed by `within`.
at::Tensor climb(const Network& network, const Originals& originals, at::Tensor units, double eps, int64_t steps,
                 double size);

}  // namespace netmend::inputs
