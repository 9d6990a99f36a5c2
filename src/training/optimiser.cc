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

}  // namespace

int state_count(Method method) { return method == Method::kSgd ? 0 : method == Method::kAdam ? 2 : 1; }

void update(const StepForm& form, float* p, const float* g, float* first, float* second, int64_t count) {
  float rate = float(form.rate), decay = float(form.decay);
  switch (form.method) {
    case Method::kSgd:
      return sgd(p, g, count, rate, decay);
    case Method::kMomentum:
      return with_momentum(p, g, first, count, rate, decay, float(form.momentum));
    case Method::kRmsprop:
      return rmsprop(p, g, first, count, rate, decay);
    case Method::kAdam: {
      double one = 1 - std::pow(kFirstDecay, double(form.step)), two = 1 - std::pow(kSecondDecay, double(form.step));
      return adam(p, g, first, second, count, float(form.rate / one), decay, float(1 / std::sqrt(two)));
    }
  }
}

}  // namespace netmend::training
