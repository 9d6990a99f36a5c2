// Basic iterative method. Kurakin, Goodfellow, Bengio: Adversarial examples in the physical world (arXiv:1607.02533):
// FGSM with small steps, each projected to the eps-ball and the valid range. A step is a fifth of eps unless told
// otherwise. CleverHans projects to the eps-ball alone, and so does --as-published cleverhans.
#include <ATen/ATen.h>

#include "inputs/gradient_sign.h"
#include "inputs/method.h"

namespace netmend::inputs {

Changed bim(const Network& network, const Originals& originals, const Settings& settings) {
  const double size = settings.step_size > 0 ? settings.step_size : settings.eps / 5;
  if (settings.as_published == "cleverhans") {
    at::Tensor units = originals.units;
    for (int64_t step = 0; step < settings.steps; ++step) {
      at::Tensor moved = units + size * loss_sign(network, originals, units);
      units = originals.units + (moved - originals.units).clamp(-settings.eps, settings.eps);
    }
    return {units};
  }
  return {climb(network, originals, originals.units, settings.eps, settings.steps, size)};
}

}  // namespace netmend::inputs
