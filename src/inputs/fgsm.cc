// Fast gradient sign method. Goodfellow, Shlens, Szegedy: Explaining and harnessing adversarial examples (ICLR 2015,
// arXiv:1412.6572): x' = x + eps · sign(dL/dx), clipped to the valid range. CleverHans does not clip unless
// told to, and neither does --as-published cleverhans.
#include <ATen/ATen.h>

#include "inputs/gradient_sign.h"
#include "inputs/method.h"

namespace netmend::inputs {

Changed fgsm(const Network& network, const Originals& originals, const Settings& settings) {
  if (settings.as_published == "cleverhans")
    return {originals.units + settings.eps * loss_sign(network, originals, originals.units)};
  return {within(originals.units + settings.eps * loss_sign(network, originals, originals.units), originals.units,
                 settings.eps)};
}

}  // namespace netmend::inputs
