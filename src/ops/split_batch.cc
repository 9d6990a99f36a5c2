#include "ops/split_batch.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "ops/vector_clones.h"

namespace netmend::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Inputs × channels × positions.
struct Planes {
  int64_t inputs, channels, positions;
  explicit Planes(const at::Tensor& x)
      : inputs(x.size(0)), channels(x.size(1)), positions(x.numel() / std::max<int64_t>(1, inputs * channels)) {}
};

constexpr int64_t kLanes = 16;

/// Sums of a and of a·b over a run, in lanes that add up in one order whatever the vector width.
NETMEND_INLINE void add_run(const float* a, const float* b, float shift, int64_t count, double& sum, double& product) {
  float lane_sum[kLanes] = {}, lane_product[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) {
      lane_sum[l] += a[i + l];
      lane_product[l] += a[i + l] * (b[i + l] - shift);
    }
  for (int64_t l = 0; i < count; ++i, ++l) {
    lane_sum[l] += a[i];
    lane_product[l] += a[i] * (b[i] - shift);
  }
  for (int64_t l = 0; l < kLanes; ++l) sum += lane_sum[l], product += lane_product[l];
}

/// For each channel the sum of g and of g · (x − shift).
NETMEND_VECTOR_CLONES void sums_of(const float* g, const float* x, const float* shift, Planes p, double* sums,
                                   double* products) {
  for (int64_t n = 0; n < p.inputs; ++n)
    for (int64_t c = 0; c < p.channels; ++c, g += p.positions, x += p.positions)
      add_run(g, x, shift[c], p.positions, sums[c], products[c]);
}

/// For each channel the sum of x − shift and of its square.
NETMEND_VECTOR_CLONES void moments_of(const float* x, const float* shift, Planes p, double* sums, double* squares) {
  for (int64_t n = 0; n < p.inputs; ++n)
    for (int64_t c = 0; c < p.channels; ++c, x += p.positions) {
      float lane_sum[kLanes] = {}, lane_square[kLanes] = {}, k = shift[c];
      int64_t i = 0;
      for (; i + kLanes <= p.positions; i += kLanes)
        for (int64_t l = 0; l < kLanes; ++l) {
          float d = x[i + l] - k;
          lane_sum[l] += d;
          lane_square[l] += d * d;
        }
      for (int64_t l = 0; i < p.positions; ++i, ++l) {
        float d = x[i] - k;
        lane_sum[l] += d;
        lane_square[l] += d * d;
      }
      for (int64_t l = 0; l < kLanes; ++l) sums[c] += lane_sum[l], squares[c] += lane_square[l];
    }
}

/// y = x · factor + offset
NETMEND_VECTOR_CLONES void scale_planes(const float* x, const float* factor, const float* offset, Planes p, float* y) {
  for (int64_t n = 0; n < p.inputs; ++n)
    for (int64_t c = 0; c < p.channels; ++c, x += p.positions, y += p.positions)
      for (int64_t i = 0; i < p.positions; ++i) y[i] = x[i] * factor[c] + offset[c];
}

/// gx = g · a + x · b + c, channel by channel
NETMEND_VECTOR_CLONES void combine_planes(const float* g, const float* x, const float* a, const float* b,
                                          const float* c, Planes p, float* gx) {
  for (int64_t n = 0; n < p.inputs; ++n)
    for (int64_t k = 0; k < p.channels; ++k, g += p.positions, x += p.positions, gx += p.positions)
      for (int64_t i = 0; i < p.positions; ++i) gx[i] = g[i] * a[k] + x[i] * b[k] + c[k];
}

struct Statistics {
  double count = 0;
  std::vector<double> mean, variance;
};

/// Sums around the running mean, which keeps their differences exact enough for float values far from zero.
Statistics statistics_of(const at::Tensor& x, const at::Tensor& running_mean) {
  Planes p(x);
  const size_t channels = size_t(p.channels);
  const float* shift = running_mean.data_ptr<float>();
  std::vector<float> around(shift, shift + channels);  // part 0 will change it when all have met
  std::vector<double> sums(2 * channels + 1);
  moments_of(x.data_ptr<float>(), around.data(), p, sums.data(), sums.data() + channels);
  sums.back() = double(p.inputs * p.positions);
  seat().batch->sum(seat().part, sums);
  Statistics result{sums.back(), std::vector<double>(channels), std::vector<double>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    double off = sums[c] / result.count;
    result.mean[c] = double(around[c]) + off;
    result.variance[c] = std::max(0.0, sums[channels + c] / result.count - off * off);
  }
  return result;
}

void update_running(const Statistics& s, const at::Tensor& mean, const at::Tensor& variance, double momentum) {
  float *m = mean.data_ptr<float>(), *v = variance.data_ptr<float>();
  for (size_t c = 0; c < s.mean.size(); ++c) {
    m[c] = float(momentum * m[c] + (1 - momentum) * s.mean[c]);
    v[c] = float(momentum * v[c] + (1 - momentum) * s.variance[c] * s.count / (s.count - 1));
  }
}

at::Tensor vector_of(const std::vector<double>& numbers) {
  at::Tensor out = at::empty({int64_t(numbers.size())}, at::kDouble);
  std::copy(numbers.begin(), numbers.end(), out.data_ptr<double>());
  return out;
}

struct Normalise : torch::autograd::Function<Normalise> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& scale,
                            const at::Tensor& bias, const at::Tensor& mean, const at::Tensor& variance, double epsilon,
                            double momentum) {
    at::Tensor x = input.contiguous();
    Statistics s = statistics_of(x, mean);
    if (s.count < 2) fail("batch statistics need more than one value for each channel");
    if (seat().part == 0) update_running(s, mean, variance, momentum);
    std::vector<double> inverse(s.mean.size());
    std::vector<float> factor(s.mean.size()), offset(s.mean.size());
    const float *w = scale.data_ptr<float>(), *b = bias.data_ptr<float>();
    for (size_t c = 0; c < inverse.size(); ++c) {
      inverse[c] = 1 / std::sqrt(s.variance[c] + epsilon);
      factor[c] = float(w[c] * inverse[c]);
      offset[c] = float(b[c] - s.mean[c] * w[c] * inverse[c]);
    }
    at::Tensor y = at::empty_like(x);
    scale_planes(x.data_ptr<float>(), factor.data(), offset.data(), Planes(x), y.data_ptr<float>());
    context->save_for_backward({x, scale, vector_of(s.mean), vector_of(inverse)});
    return y;
  }

  /// gx = w/σ · (g − mean of g − x̂ · mean of g·x̂), means over the whole batch.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &scale = saved[1];
    const double *mean = saved[2].data_ptr<double>(), *inverse = saved[3].data_ptr<double>();
    at::Tensor g = gradients[0].contiguous(), gx = at::empty_like(x);
    Planes p(x);
    const size_t channels = size_t(p.channels);
    std::vector<float> around(mean, mean + channels);
    std::vector<double> sums(2 * channels + 1);
    sums_of(g.data_ptr<float>(), x.data_ptr<float>(), around.data(), p, sums.data(), sums.data() + channels);
    for (size_t c = 0; c < channels; ++c)  // from x − rounded mean to x̂
      sums[channels + c] = (sums[channels + c] - sums[c] * (mean[c] - double(around[c]))) * inverse[c];
    at::Tensor gscale = at::empty_like(scale), gbias = at::empty_like(scale);
    for (size_t c = 0; c < channels; ++c) {
      gbias.data_ptr<float>()[c] = float(sums[c]);
      gscale.data_ptr<float>()[c] = float(sums[channels + c]);
    }
    sums.back() = double(p.inputs * p.positions);
    seat().batch->sum(seat().part, sums);
    std::vector<float> a(channels), b(channels), k(channels);
    for (size_t c = 0; c < channels; ++c) {
      double factor = scale.data_ptr<float>()[c] * inverse[c], product = sums[channels + c] / sums.back() * inverse[c];
      a[c] = float(factor);
      b[c] = float(-factor * product);
      k[c] = float(factor * (product * mean[c] - sums[c] / sums.back()));
    }
    combine_planes(g.data_ptr<float>(), x.data_ptr<float>(), a.data(), b.data(), k.data(), p, gx.data_ptr<float>());
    return {gx, gscale, gbias, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

Seat& seat() {
  thread_local Seat mine;
  return mine;
}

at::Tensor split_batch_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias,
                            const at::Tensor& mean, const at::Tensor& variance, BatchNormForm form) {
  return Normalise::apply(x, scale.contiguous(), bias.contiguous(), mean, variance, form.epsilon, form.momentum);
}

}  // namespace netmend::ops
