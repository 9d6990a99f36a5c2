// DeepFault's synthesis. Eniser, Gerasimou, Sen: DeepFault, fault localization for deep neural networks (FASE 2019,
// arXiv:1902.05974). Inputs that drive suspicious units S: g = mean over S of dφ/dx, x' = x + step · g, no value moved
// by more than d and all in the valid range. One step; step = 1, d = 0.1. The published code writes only the first
// channel of an image with channels first: --as-published deepfault does so too.
#include <ATen/ATen.h>

#include "inputs/gradient_sign.h"
#include "inputs/method.h"

namespace netmend::inputs {

Changed deepfault(const Network& network, const Originals& originals, const Settings& settings) {
  const double step = settings.step_size > 0 ? settings.step_size : 1;
  at::Tensor move = (step * network.unit_gradient(originals, originals.units)).clamp(-settings.eps, settings.eps);
  const Subject& changed = network.changed();
  if (settings.as_published == "deepfault" && changed.kind == Kind::kImage && !changed.about.channels_last)
    move.narrow(1, 1, move.size(1) - 1).zero_();
  return {within(originals.units + move, originals.units, settings.eps)};
}

}  // namespace netmend::inputs
