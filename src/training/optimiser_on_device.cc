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
    case Method::kAdagrad:
      first.addcmul_(gradient, gradient);
      p.addcdiv_(gradient, first.sqrt().add_(kSmallSum), -form.rate);
      return;
    case Method::kAdamax:
      first.mul_(kFirstDecay).add_(gradient, 1 - kFirstDecay);
      second = at::maximum(second.mul_(kSecondDecay), gradient.abs().add_(kSmall));
      p.addcdiv_(first, second, -form.rate / (1 - std::pow(kFirstDecay, double(form.step))));
      return;
    case Method::kNadam: {
      const NadamRates rates = nadam_rates(form);
      first.mul_(kFirstDecay).add_(gradient, 1 - kFirstDecay);
      second.mul_(kSecondDecay).addcmul_(gradient, gradient, 1 - kSecondDecay);
      const double scale = 1 / std::sqrt(1 - std::pow(kSecondDecay, double(form.step)));
      const at::Tensor size = second.sqrt().mul_(scale).add_(kSmall);
      p.addcdiv_(gradient, size, -rates.gradient).addcdiv_(first, size, -rates.mean);
      return;
    }
  }
}

}  // namespace netmend::training
