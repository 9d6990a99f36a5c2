#include "inputs/gradient_sign.h"

#include <ATen/ATen.h>

namespace netmend::inputs {

at::Tensor loss_sign(const Network& network, const Originals& originals, const at::Tensor& units) {
  auto gradient = network.gradient(originals, units, [&](const at::Tensor& scores, const at::Tensor& rows) {
    return std::vector<at::Tensor>{away_from(scores, originals.predictions.index_select(0, rows))};
  });
  return gradient.gradients[0].sign_();
}

at::Tensor within(const at::Tensor& units, const at::Tensor& originals, double eps) {
  // An original may lie a little outside of what was taken for its range: it may stay where it is.
  at::Tensor low = at::minimum((originals - eps).clamp_min_(0), originals);
  at::Tensor high = at::maximum((originals + eps).clamp_max_(1), originals);
  return at::minimum(at::maximum(units, low), high);
}

at::Tensor climb(const Network& network, const Originals& originals, at::Tensor units, double eps, int64_t steps,
                 double size) {
  for (int64_t step = 0; step < steps; ++step)
    units = within(units + size * loss_sign(network, originals, units), originals.units, eps);
  return units;
}

}  // namespace netmend::inputs
