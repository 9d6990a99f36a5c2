// Basic iterative method. Kurakin, Goodfellow, Bengio: Adversarial examples in the physical world (arXiv:1607.02533):
// FGSM with small steps, each projected to the eps-ball and the valid range. A step is a fifth of eps unless told
// otherwise.
#include <ATen/ATen.h>

#include "inputs/gradient_sign.h"
#include "inputs/method.h"

namespace netmend::inputs {

Changed bim(const Network& network, const Originals& originals, const Settings& settings) {
  const double size = settings.step_size > 0 ? settings.step_size : settings.eps / 5;
  return {climb(network, originals, originals.units, settings.eps, settings.steps, size)};
}

}  // namespace netmend::inputs
