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

/// A tensor as channels in runs: inputs × channels × positions, or, when channels are innermost in memory, rows of
/// them.
struct Form {
  int64_t inputs, channels, positions;
  bool rows;

  explicit Form(const at::Tensor& x)
      : inputs(x.size(0)), channels(x.size(1)), positions(x.numel() / std::max<int64_t>(1, inputs * channels)) {
    rows = positions == 1 || !x.is_contiguous();
    if (rows) inputs *= positions, positions = 1;
  }
  double count() const { return double(inputs * positions); }
};

at::Tensor in_runs(const at::Tensor& x) {
  return x.contiguous(x.dim() == 4 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous);
}

constexpr int64_t kLanes = 16;  ///< partial sums that add up in one order whatever the vector width
constexpr int64_t kBlock = 64;  ///< rows that are summed in float before they are added in double

/// first[c] += sum of a, second[c] += sum of a · (b − shift); with one tensor for both: of (b − shift) and its square.
template <bool kSquare>
NETMEND_INLINE void add_planes(const float* a, const float* b, const float* shift, const Form& f, double* first,
                               double* second) {
  for (int64_t n = 0; n < f.inputs; ++n)
    for (int64_t c = 0; c < f.channels; ++c, a += f.positions, b += f.positions) {
      float one[kLanes] = {}, two[kLanes] = {}, k = shift[c];
      auto add = [&](int64_t i, int64_t lane) {
        float d = b[i] - k, w = kSquare ? d : a[i];
        one[lane] += w;
        two[lane] += w * d;
      };
      int64_t i = 0;
      for (; i + kLanes <= f.positions; i += kLanes)
        for (int64_t l = 0; l < kLanes; ++l) add(i + l, l);
      for (int64_t l = 0; i < f.positions; ++i, ++l) add(i, l);
      for (int64_t l = 0; l < kLanes; ++l) first[c] += one[l], second[c] += two[l];
    }
}

/// The same for rows of channels; `one` and `two` are room for a row each.
template <bool kSquare>
NETMEND_INLINE void add_rows(const float* a, const float* b, const float* shift, const Form& f, double* first,
                             double* second, float* one, float* two) {
  for (int64_t n = 0; n < f.inputs;) {
    for (int64_t c = 0; c < f.channels; ++c) one[c] = two[c] = 0;
    for (int64_t end = std::min(f.inputs, n + kBlock); n < end; ++n, a += f.channels, b += f.channels)
      for (int64_t c = 0; c < f.channels; ++c) {
        float d = b[c] - shift[c], w = kSquare ? d : a[c];
        one[c] += w;
        two[c] += w * d;
      }
    for (int64_t c = 0; c < f.channels; ++c) first[c] += one[c], second[c] += two[c];
  }
}

NETMEND_VECTOR_CLONES void moments_of(const float* __restrict x, const float* __restrict shift, const Form& f,
                                      double* first, double* second, float* __restrict one, float* __restrict two) {
  if (f.rows)
    add_rows<true>(x, x, shift, f, first, second, one, two);
  else
    add_planes<true>(x, x, shift, f, first, second);
}

NETMEND_VECTOR_CLONES void products_of(const float* __restrict g, const float* __restrict x,
                                       const float* __restrict shift, const Form& f, double* first, double* second,
                                       float* __restrict one, float* __restrict two) {
  if (f.rows)
    add_rows<false>(g, x, shift, f, first, second, one, two);
  else
    add_planes<false>(g, x, shift, f, first, second);
}

/// y = x · factor + offset
NETMEND_VECTOR_CLONES void scale_runs(const float* __restrict x, const float* __restrict factor,
                                      const float* __restrict offset, const Form& f, float* __restrict y) {
  for (int64_t n = 0; n < f.inputs; ++n) {
    if (f.rows) {
      for (int64_t c = 0; c < f.channels; ++c) y[c] = x[c] * factor[c] + offset[c];
      x += f.channels, y += f.channels;
      continue;
    }
    for (int64_t c = 0; c < f.channels; ++c, x += f.positions, y += f.positions)
      for (int64_t i = 0; i < f.positions; ++i) y[i] = x[i] * factor[c] + offset[c];
  }
}

/// gx = g · a + x · b + c, channel by channel
NETMEND_VECTOR_CLONES void combine_runs(const float* __restrict g, const float* __restrict x, const float* __restrict a,
                                        const float* __restrict b, const float* __restrict c, const Form& f,
                                        float* __restrict gx) {
  for (int64_t n = 0; n < f.inputs; ++n) {
    if (f.rows) {
      for (int64_t k = 0; k < f.channels; ++k) gx[k] = g[k] * a[k] + x[k] * b[k] + c[k];
      g += f.channels, x += f.channels, gx += f.channels;
      continue;
    }
    for (int64_t k = 0; k < f.channels; ++k, g += f.positions, x += f.positions, gx += f.positions)
      for (int64_t i = 0; i < f.positions; ++i) gx[i] = g[i] * a[k] + x[i] * b[k] + c[k];
  }
}

struct Statistics {
  double count = 0;
  std::vector<double> mean, variance;
};

/// Sums around the running mean, which keeps their differences exact enough for float values far from zero.
Statistics statistics_of(const at::Tensor& x, const at::Tensor& running_mean) {
  Form form(x);
  const size_t channels = size_t(form.channels);
  const float* shift = running_mean.data_ptr<float>();
  std::vector<float> around(shift, shift + channels), room(2 * channels);  // part 0 changes the mean behind the barrier
  std::vector<double> sums(2 * channels + 1);
  moments_of(x.data_ptr<float>(), around.data(), form, sums.data(), sums.data() + channels, room.data(),
             room.data() + channels);
  sums.back() = form.count();
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
    at::Tensor x = in_runs(input);
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
    scale_runs(x.data_ptr<float>(), factor.data(), offset.data(), Form(x), y.data_ptr<float>());
    context->save_for_backward({x, scale, vector_of(s.mean), vector_of(inverse)});
    return y;
  }

  /// gx = w/σ · (g − mean of g − x̂ · mean of g·x̂), means over the whole batch.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &scale = saved[1];
    const double *mean = saved[2].data_ptr<double>(), *inverse = saved[3].data_ptr<double>();
    at::MemoryFormat order = x.is_contiguous() ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
    at::Tensor g = gradients[0].contiguous(order), gx = at::empty_like(x);
    Form form(x);
    const size_t channels = size_t(form.channels);
    std::vector<float> around(mean, mean + channels), room(2 * channels);
    std::vector<double> sums(2 * channels + 1);
    products_of(g.data_ptr<float>(), x.data_ptr<float>(), around.data(), form, sums.data(), sums.data() + channels,
                room.data(), room.data() + channels);
    for (size_t c = 0; c < channels; ++c)  // from x − rounded mean to x̂
      sums[channels + c] = (sums[channels + c] - sums[c] * (mean[c] - double(around[c]))) * inverse[c];
    at::Tensor gscale = at::empty_like(scale), gbias = at::empty_like(scale);
    for (size_t c = 0; c < channels; ++c) {
      gbias.data_ptr<float>()[c] = float(sums[c]);
      gscale.data_ptr<float>()[c] = float(sums[channels + c]);
    }
    sums.back() = form.count();
    seat().batch->sum(seat().part, sums);
    std::vector<float> a(channels), b(channels), k(channels);
    for (size_t c = 0; c < channels; ++c) {
      double factor = scale.data_ptr<float>()[c] * inverse[c], product = sums[channels + c] / sums.back() * inverse[c];
      a[c] = float(factor);
      b[c] = float(-factor * product);
      k[c] = float(factor * (product * mean[c] - sums[c] / sums.back()));
    }
    combine_runs(g.data_ptr<float>(), x.data_ptr<float>(), a.data(), b.data(), k.data(), form, gx.data_ptr<float>());
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
