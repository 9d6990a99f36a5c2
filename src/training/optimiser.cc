#include "training/optimiser.h"

#include <cmath>

#include "ops/vector_clones.h"

// This file is compiled without contraction, so that a vector's worth and the odd elements after it round alike and the
// buffer may be cut anywhere; and without errno, which would keep square roots out of vectors.
namespace netmend::training {
namespace {

NETMEND_VECTOR_CLONES void sgd(float* __restrict p, const float* __restrict g, int64_t count, float rate, float decay) {
  for (int64_t i = 0; i < count; ++i) p[i] -= rate * (g[i] + decay * p[i]);
}

NETMEND_VECTOR_CLONES void with_momentum(float* __restrict p, const float* __restrict g, float* __restrict v,
                                         int64_t count, float rate, float decay, float momentum) {
  for (int64_t i = 0; i < count; ++i) {
    v[i] = momentum * v[i] + (g[i] + decay * p[i]);
    p[i] -= rate * v[i];
  }
}

NETMEND_VECTOR_CLONES void rmsprop(float* __restrict p, const float* __restrict g, float* __restrict square,
                                   int64_t count, float rate, float decay) {
  const float keep = float(kSquareDecay), take = float(1 - kSquareDecay);
  for (int64_t i = 0; i < count; ++i) {
    float gradient = g[i] + decay * p[i];
    square[i] = keep * square[i] + take * gradient * gradient;
    p[i] -= rate * gradient / (__builtin_sqrtf(square[i]) + kSmall);
  }
}

/// Kingma and Ba 2015; `rate` and `scale` carry the corrections of the first steps.
NETMEND_VECTOR_CLONES void adam(float* __restrict p, const float* __restrict g, float* __restrict mean,
                                float* __restrict square, int64_t count, float rate, float decay, float scale) {
  const float b1 = float(kFirstDecay), b2 = float(kSecondDecay), a1 = float(1 - kFirstDecay),
              a2 = float(1 - kSecondDecay);
  for (int64_t i = 0; i < count; ++i) {
    float gradient = g[i] + decay * p[i];
    mean[i] = b1 * mean[i] + a1 * gradient;
    square[i] = b2 * square[i] + a2 * gradient * gradient;
    p[i] -= rate * mean[i] / (__builtin_sqrtf(square[i]) * scale + kSmall);
  }
}

/// Duchi et al. 2011.
NETMEND_VECTOR_CLONES void adagrad(float* __restrict p, const float* __restrict g, float* __restrict sum, int64_t count,
                                   float rate, float decay) {
  for (int64_t i = 0; i < count; ++i) {
    float gradient = g[i] + decay * p[i];
    sum[i] += gradient * gradient;
    p[i] -= rate * gradient / (__builtin_sqrtf(sum[i]) + kSmallSum);
  }
}

/// Kingma and Ba 2015, with the largest gradient in place of the mean square.
NETMEND_VECTOR_CLONES void adamax(float* __restrict p, const float* __restrict g, float* __restrict mean,
                                  float* __restrict largest, int64_t count, float rate, float decay) {
  const float b1 = float(kFirstDecay), b2 = float(kSecondDecay), a1 = float(1 - kFirstDecay);
  for (int64_t i = 0; i < count; ++i) {
    float gradient = g[i] + decay * p[i];
    mean[i] = b1 * mean[i] + a1 * gradient;
    const float size = (gradient < 0 ? -gradient : gradient) + kSmall, before = b2 * largest[i];
    largest[i] = before > size ? before : size;
    p[i] -= rate * mean[i] / largest[i];
  }
}

/// Dozat 2016.
NETMEND_VECTOR_CLONES void nadam(float* __restrict p, const float* __restrict g, float* __restrict mean,
                                 float* __restrict square, int64_t count, float rate, float ahead, float decay,
                                 float scale) {
  const float b1 = float(kFirstDecay), b2 = float(kSecondDecay), a1 = float(1 - kFirstDecay),
              a2 = float(1 - kSecondDecay);
  for (int64_t i = 0; i < count; ++i) {
    float gradient = g[i] + decay * p[i];
    mean[i] = b1 * mean[i] + a1 * gradient;
    square[i] = b2 * square[i] + a2 * gradient * gradient;
    p[i] -= (rate * gradient + ahead * mean[i]) / (__builtin_sqrtf(square[i]) * scale + kSmall);
  }
}

double correction(double decay, int64_t step) { return 1 - std::pow(decay, double(step)); }

}  // namespace

int state_count(Method method) {
  if (method == Method::kSgd) return 0;
  return method == Method::kAdam || method == Method::kAdamax || method == Method::kNadam ? 2 : 1;
}

NadamRates nadam_rates(const StepForm& form) {
  auto momentum = [](int64_t step) { return kFirstDecay * (1 - 0.5 * std::pow(0.96, 0.004 * double(step))); };
  // The product over all steps so far. A thread asks for one step after the other, so that each costs one factor.
  thread_local int64_t last = 0;
  thread_local double product = 1;
  if (form.step < last) last = 0, product = 1;
  while (last < form.step) product *= momentum(++last);
  const double now = momentum(form.step), next = momentum(form.step + 1);
  return {form.rate * (1 - now) / (1 - product), form.rate * next / (1 - product * next)};
}

void update(const StepForm& form, float* p, const float* g, float* first, float* second, int64_t count) {
  float rate = float(form.rate), decay = float(form.decay);
  switch (form.method) {
    case Method::kSgd:
      return sgd(p, g, count, rate, decay);
    case Method::kMomentum:
      return with_momentum(p, g, first, count, rate, decay, float(form.momentum));
    case Method::kRmsprop:
      return rmsprop(p, g, first, count, rate, decay);
    case Method::kAdam:
      return adam(p, g, first, second, count, float(form.rate / correction(kFirstDecay, form.step)), decay,
                  float(1 / std::sqrt(correction(kSecondDecay, form.step))));
    case Method::kAdagrad:
      return adagrad(p, g, first, count, rate, decay);
    case Method::kAdamax:
      return adamax(p, g, first, second, count, float(form.rate / correction(kFirstDecay, form.step)), decay);
    case Method::kNadam: {
      const NadamRates rates = nadam_rates(form);
      return nadam(p, g, first, second, count, float(rates.gradient), float(rates.mean), decay,
                   float(1 / std::sqrt(correction(kSecondDecay, form.step))));
    }
  }
}

}  // namespace netmend::training
