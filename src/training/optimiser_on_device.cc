#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "base/error.h"
#include "ops/cuda_kernel.h"
#include "training/optimiser.h"

namespace netmend::training {
namespace {

/// The formulas of optimiser.cc, a number a thread.
constexpr const char* kSource = R"(
extern "C" __global__ void update(float* __restrict__ p, const float* __restrict__ g, float* __restrict__ first,
    float* __restrict__ second, const float* __restrict__ numbers, long long count) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float rate = numbers[0], gradient = g[i] + DECAY * p[i];
  if (METHOD == SGD) {
    p[i] -= rate * gradient;
  } else if (METHOD == MOMENTUM) {
    first[i] = MOMENTUM_SHARE * first[i] + gradient;
    p[i] -= rate * first[i];
  } else if (METHOD == RMSPROP) {
    first[i] = KEEP * first[i] + TAKE * gradient * gradient;
    p[i] -= rate * gradient / (sqrtf(first[i]) + SMALL);
  } else if (METHOD == ADAGRAD) {
    first[i] += gradient * gradient;
    p[i] -= rate * gradient / (sqrtf(first[i]) + SMALL_SUM);
  } else {
    first[i] = B1 * first[i] + A1 * gradient;
    if (METHOD == ADAMAX) {
      second[i] = fmaxf(B2 * second[i], fabsf(gradient) + SMALL);
      p[i] -= rate * first[i] / second[i];
    } else {
      second[i] = B2 * second[i] + A2 * gradient * gradient;
      const float size = sqrtf(second[i]) * numbers[1] + SMALL;
      p[i] -= METHOD == NADAM ? (rate * gradient + numbers[2] * first[i]) / size : rate * first[i] / size;
    }
  }
}
)";

std::string source_of(const StepForm& form) {
  std::string source;
  auto define = [&](const char* name, double value) { source += fmt::format("#define {} {:.9e}f\n", name, value); };
  auto number = [&](const char* name, Method method) { source += fmt::format("#define {} {}\n", name, int(method)); };
  number("METHOD", form.method), number("SGD", Method::kSgd), number("MOMENTUM", Method::kMomentum);
  number("RMSPROP", Method::kRmsprop), number("ADAGRAD", Method::kAdagrad), number("ADAMAX", Method::kAdamax);
  number("NADAM", Method::kNadam);
  define("DECAY", form.decay), define("MOMENTUM_SHARE", form.momentum), define("KEEP", kSquareDecay);
  define("TAKE", 1 - kSquareDecay), define("SMALL", kSmall), define("SMALL_SUM", kSmallSum);
  define("B1", kFirstDecay), define("A1", 1 - kFirstDecay), define("B2", kSecondDecay), define("A2", 1 - kSecondDecay);
  return source + kSource;
}

}  // namespace

std::array<float, 3> step_numbers(const StepForm& form) {
  const double one = 1 - std::pow(kFirstDecay, double(form.step)), two = 1 - std::pow(kSecondDecay, double(form.step));
  switch (form.method) {
    case Method::kAdam:
      return {float(form.rate / one), float(1 / std::sqrt(two)), 0};
    case Method::kAdamax:
      return {float(form.rate / one), 0, 0};
    case Method::kNadam: {
      const NadamRates rates = nadam_rates(form);
      return {float(rates.gradient), float(1 / std::sqrt(two)), float(rates.mean)};
    }
    case Method::kSgd:
    case Method::kMomentum:
    case Method::kRmsprop:
    case Method::kAdagrad:
      break;
  }
  return {float(form.rate), 0, 0};
}

bool update_by_kernel(const StepForm& form, at::Tensor& p, const at::Tensor& g, at::Tensor& first, at::Tensor& second,
                      const at::Tensor& numbers) {
  const ops::CudaKernel* kernel = p.is_cuda() ? ops::CudaKernel::find(source_of(form), "update") : nullptr;
  if (!kernel) return false;
  constexpr unsigned kThreads = 256;
  auto memory = [](const at::Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; };
  float *own = memory(p), *of = memory(g), *one = memory(first), *two = memory(second), *with = memory(numbers);
  long long count = p.numel();
  kernel->launch(p, {unsigned((count + kThreads - 1) / kThreads), kThreads}, {&own, &of, &one, &two, &with, &count});
  return true;
}

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
