// Normalisation. In training batch norm uses the statistics of the batch and keeps the running ones up to date.
#include <cmath>

#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/split_batch.h"

namespace netmend::ops::families {
namespace {

void require_channels(const at::Tensor& x) {
  if (x.dim() < 2) fail("the input has {} axes, expected at least 2", x.dim());
}

/// A vector with one number for each channel, to be combined with x.
at::Tensor per_channel(const at::Tensor& v, const at::Tensor& x) {
  std::vector<int64_t> shape(x.dim(), 1);
  shape[1] = v.numel();
  return v.reshape(shape);
}

struct BatchNorm {
  double epsilon, momentum;
  bool training_mode, spatial;

  explicit BatchNorm(const NodeView& node)
      : epsilon(node.real("epsilon", 1e-5)),
        momentum(node.real("momentum", 0.9)),
        training_mode(node.integer("training_mode", 0) != 0),
        spatial(node.integer("spatial", 1) != 0) {
    node.require(epsilon >= 0 && std::isfinite(epsilon), "epsilon is {}", epsilon);
  }
};

struct BatchNormOperands {
  at::Tensor x, scale, bias, mean, variance;
};

void check_lengths(const BatchNormOperands& o) {
  for (const at::Tensor* v : {&o.scale, &o.bias, &o.mean, &o.variance}) {
    if (v->dim() != 1 || v->size(0) != o.x.size(1))
      fail("a parameter has {} numbers for {} channels", v->numel(), o.x.size(1));
  }
}

/// Before opset 9 a file may ask for statistics of each element instead of each channel: the same on a flat input. An
/// input with one axis has one channel.
BatchNormOperands batch_norm_operands(const Call& call, bool spatial) {
  BatchNormOperands o{call.in(0), call.in(1), call.in(2), call.in(3), call.in(4)};
  if (o.x.dim() == 0) fail("the input is a scalar");
  if (o.x.dim() == 1) o.x = o.x.unsqueeze(1);
  if (!spatial) {
    o.x = o.x.flatten(1);
    for (at::Tensor* v : {&o.scale, &o.bias, &o.mean, &o.variance}) *v = v->reshape({-1});
  }
  check_lengths(o);
  return o;
}

/// Statistics of the batch. The running ones are buffers of the trainer's and are changed in place, the variance by
/// n/(n−1) as frameworks do when they train.
at::Tensor batch_norm_training(const BatchNormOperands& o, const BatchNorm& form) {
  bool split = seat().batch && o.x.scalar_type() == at::kFloat && o.x.device().is_cpu();
  if (split) return split_batch_norm(o.x, o.scale, o.bias, o.mean, o.variance, {form.epsilon, form.momentum});
  if (o.x.numel() <= o.x.size(1)) fail("batch statistics need more than one value for each channel");
  return at::batch_norm(o.x, o.scale, o.bias, o.mean, o.variance, true, 1 - form.momentum, form.epsilon, false);
}

at::Tensor batch_norm_with(const BatchNormOperands& o, const at::Tensor& mean, const at::Tensor& variance,
                           double epsilon) {
  at::Tensor factor = o.scale / at::sqrt(variance + epsilon);
  return (o.x - per_channel(mean, o.x)) * per_channel(factor, o.x) + per_channel(o.bias, o.x);
}

/// LibTorch has no gradient for the running statistics; an edit of them may ask for one.
at::Tensor batch_norm_inference(const BatchNormOperands& o, const BatchNorm& form) {
  if (tracked(o.mean) || tracked(o.variance)) return batch_norm_with(o, o.mean, o.variance, form.epsilon);
  return at::batch_norm(o.x, o.scale, o.bias, o.mean, o.variance, false, 0, form.epsilon, false);
}

/// What a node says that was exported in training mode: batch statistics, and running ones as further outputs.
at::Tensor batch_norm_exported(Call& call, const BatchNormOperands& o, const BatchNorm& form) {
  if (o.x.numel() == 0) fail("the batch is empty");
  std::vector<int64_t> axes = all_axes(o.x.dim());
  axes.erase(axes.begin() + 1);
  at::Tensor mean = at::mean(o.x, axes), variance = at::var(o.x, axes, false);
  call.set(1, o.mean * form.momentum + mean * (1 - form.momentum));
  call.set(2, o.variance * form.momentum + variance * (1 - form.momentum));
  return batch_norm_with(o, mean, variance, form.epsilon);
}

/// Layer norm over the last axes with a scale and bias that may be broadcast.
struct LayerNorm {
  at::Tensor y, mean, inverse;
};

/// LibTorch's own carry no gradient.
void set_statistics(LayerNorm& result, const at::Tensor& x, int64_t axis, double epsilon) {
  std::vector<int64_t> axes = all_axes(x.dim());
  axes.erase(axes.begin(), axes.begin() + axis);
  result.mean = at::mean(x, axes, true);
  result.inverse = at::rsqrt(at::var(x, axes, false, true) + epsilon);
}

LayerNorm layer_norm_of(const at::Tensor& x, int64_t axis, const at::Tensor& scale, const at::Tensor& bias,
                        double epsilon) {
  at::IntArrayRef shape = x.sizes().slice(axis);
  bool same = scale.sizes() == shape && (!bias.defined() || bias.sizes() == shape);
  LayerNorm result;
  std::tie(result.y, result.mean, result.inverse) =
      at::native_layer_norm(x, shape, same ? scale : at::Tensor(), same ? bias : at::Tensor(), epsilon);
  if (tracked(x)) set_statistics(result, x, axis, epsilon);
  if (same) return result;
  result.y = result.y * scale;
  if (bias.defined()) result.y = result.y + bias;
  return result;
}

/// Sums over `size` neighbouring channels.
at::Tensor local_sums(const at::Tensor& x, int64_t size) {
  int64_t n = x.size(0), c = x.size(1);  // a wider window than all channels sees no more of them
  int64_t before = std::min((size - 1) / 2, c), after = std::min(size - 1 - (size - 1) / 2, c);
  at::Tensor flat = at::constant_pad_nd(x.reshape({n, c, -1}), {0, 0, before, after}, 0);
  at::Tensor sum = flat.narrow(1, 0, c);
  for (int64_t i = 1; i <= before + after; ++i) sum = sum + flat.narrow(1, i, c);
  return sum.reshape(x.sizes());
}

at::Tensor group_norm_of(const at::Tensor& x, int64_t groups, at::Tensor scale, at::Tensor bias, double epsilon,
                         bool one_per_group) {
  require_channels(x);
  if (x.size(1) % groups != 0) fail("{} channels cannot be cut into {} groups", x.size(1), groups);
  int64_t expected = one_per_group ? groups : x.size(1);
  if (scale.numel() != expected || bias.numel() != expected) fail("scale and bias must have {} numbers", expected);
  if (one_per_group) {
    scale = at::repeat_interleave(scale, x.size(1) / groups);
    bias = at::repeat_interleave(bias, x.size(1) / groups);
  }
  return at::group_norm(x, groups, scale.reshape({-1}), bias.reshape({-1}), epsilon, false);
}

}  // namespace

Kernel batch_normalization(const NodeView& node) {
  BatchNorm form(node);
  return [=](Call& call) {
    BatchNormOperands o = batch_norm_operands(call, form.spatial);
    at::Tensor y;
    if (call.training()) {
      y = batch_norm_training(o, form);
      call.set(1, o.mean.clone());
      call.set(2, o.variance.clone());
    } else if (form.training_mode) {
      y = batch_norm_exported(call, o, form);
    } else {
      y = batch_norm_inference(o, form);
    }
    call.set(0, y.sizes() == call.in(0).sizes() ? y : y.reshape(call.in(0).sizes()));
  };
}

Kernel instance_normalization(const NodeView& node) {
  double epsilon = node.real("epsilon", 1e-5);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    require_channels(x);
    if (call.in(1).numel() != x.size(1) || call.in(2).numel() != x.size(1))
      fail("scale and bias must have {} numbers", x.size(1));
    call.set(0, at::group_norm(x, x.size(1), call.in(1).reshape({-1}), call.in(2).reshape({-1}), epsilon, false));
  };
}

/// Up to opset 20 scale and bias are for groups, since 21 for channels.
Kernel group_normalization(const NodeView& node) {
  int64_t groups = node.integer("num_groups", 0);
  double epsilon = node.real("epsilon", 1e-5);
  bool one_per_group = node.opset() < 21;
  node.require(groups > 0, "num_groups is {}", groups);
  return [=](Call& call) {
    call.set(0, group_norm_of(call.in(0), groups, call.in(1), call.in(2), epsilon, one_per_group));
  };
}

Kernel layer_normalization(const NodeView& node) {
  int64_t axis = node.integer("axis", -1);
  double epsilon = node.real("epsilon", 1e-5);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    LayerNorm n =
        layer_norm_of(x, axis_in(axis, x.dim()), call.in(1), call.has(2) ? call.in(2) : at::Tensor(), epsilon);
    call.set(0, n.y);
    call.set(1, n.mean);
    call.set(2, n.inverse);
  };
}

/// Layer norm of a sum, as ONNX Runtime's optimiser writes it.
Kernel skip_layer_normalization(const NodeView& node) {
  double epsilon = node.real("epsilon", 1e-12);
  return [=](Call& call) {
    at::Tensor sum = call.in(0) + call.in(1);
    if (call.has(4)) sum = sum + call.in(4);
    LayerNorm n =
        layer_norm_of(sum, axis_in(-1, sum.dim()), call.in(2), call.has(3) ? call.in(3) : at::Tensor(), epsilon);
    call.set(0, n.y);
    call.set(1, n.mean);
    call.set(2, n.inverse);
    call.set(3, sum);
  };
}

Kernel rms_normalization(const NodeView& node) {
  int64_t axis = node.integer("axis", -1);
  double epsilon = node.real("epsilon", 1e-5);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    std::vector<int64_t> axes = all_axes(x.dim());
    axes.erase(axes.begin(), axes.begin() + axis_in(axis, x.dim()));
    call.set(0, x * at::rsqrt(at::mean(x * x, axes, true) + epsilon) * call.in(1));
  };
}

Kernel lp_normalization(const NodeView& node) {
  int64_t axis = node.integer("axis", -1), p = node.integer("p", 2);
  node.require(p == 1 || p == 2, "p is {}, expected 1 or 2", p);
  return unary([=](const at::Tensor& x) {
    at::Tensor norm = at::norm(x, p, {axis_in(axis, x.dim())}, true);
    return at::where(norm == 0, at::zeros({}, x.options()), x / norm);  // a vector of zeros stays one
  });
}

Kernel mean_variance_normalization(const NodeView& node) {
  std::vector<int64_t> axes = node.integers("axes", {0, 2, 3});
  return unary([=](const at::Tensor& x) {
    std::vector<int64_t> over = axes_in(axes, x.dim());
    at::Tensor centred = x - at::mean(x, over, true);
    return centred / (at::sqrt(at::mean(centred * centred, over, true)) + 1e-9);
  });
}

Kernel lrn(const NodeView& node) {
  double alpha = node.real("alpha", 1e-4), beta = node.real("beta", 0.75), bias = node.real("bias", 1);
  int64_t size = node.integer("size", 0);
  node.require(size > 0, "size is {}", size);
  return unary([=](const at::Tensor& x) {
    require_channels(x);
    return x / at::pow(local_sums(x * x, size) * (alpha / double(size)) + bias, beta);
  });
}

// clang-format off
std::span<const Op> norm_rows() {
  static constexpr Op kRows[] = {
      {.name = "BatchNormalization", .prepare = batch_normalization, .kind = Kind::kNormalise},
      {.name = "GroupNormalization", .prepare = group_normalization, .kind = Kind::kNormalise},
      {.name = "InstanceNormalization", .prepare = instance_normalization, .kind = Kind::kNormalise},
      {.name = "LRN", .prepare = lrn},
      {.name = "LayerNormalization", .prepare = layer_normalization, .kind = Kind::kNormalise},
      {.name = "LpNormalization", .prepare = lp_normalization},
      {.name = "MeanVarianceNormalization", .prepare = mean_variance_normalization, .kind = Kind::kNormalise},
      {.name = "RMSNormalization", .prepare = rms_normalization, .kind = Kind::kNormalise},
      {.name = "SkipLayerNormalization", .prepare = skip_layer_normalization, .kind = Kind::kNormalise, .domain = kMicrosoft},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
