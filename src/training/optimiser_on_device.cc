#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "training/optimiser.h"

namespace netmend::training {

void update(const StepForm& form, at::Tensor& p, const at::Tensor& g, at::Tensor& first, at::Tensor& second) {
  at::NoGradGuard no_grad;
  const at::Tensor gradient = form.decay != 0 ? g + form.decay * p : g;
  switch (form.method) {
    case Method::kSgd:
      p.sub_(gradient, form.rate);
      return;
    case Method::kMomentum:
      first.mul_(form.momentum).add_(gradient);
      p.sub_(first, form.rate);
      return;
    case Method::kRmsprop:
      first.mul_(kSquareDecay).addcmul_(gradient, gradient, 1 - kSquareDecay);
      p.addcdiv_(gradient, first.sqrt().add_(kSmall), -form.rate);
      return;
    case Method::kAdam: {
      const double one = 1 - std::pow(kFirstDecay, double(form.step)),
                   two = 1 - std::pow(kSecondDecay, double(form.step));
      first.mul_(kFirstDecay).add_(gradient, 1 - kFirstDecay);
      second.mul_(kSecondDecay).addcmul_(gradient, gradient, 1 - kSecondDecay);
      p.addcdiv_(first, second.sqrt().mul_(1 / std::sqrt(two)).add_(kSmall), -form.rate / one);
      return;
    }
  }
}

}  // namespace netmend::training
