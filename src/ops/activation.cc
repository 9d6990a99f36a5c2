// Activation functions, and the soft-max family. Each element of an activation depends on one element of the input
// (PRelu has a slope per channel), so most may overwrite it.
#include <cmath>
#include <limits>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

/// `in_place` is called instead of `plain` where the input may be overwritten.
template <typename Plain, typename InPlace>
Kernel activation(Plain plain, InPlace in_place) {
  return [=](Call& call) {
    if (!overwritable(call, 0)) return call.set(0, plain(call.in(0)));
    at::Tensor x = call.in(0);
    in_place(x);
    call.set(0, x);
  };
}

at::Tensor hard_sigmoid_of(const at::Tensor& x, double alpha, double beta) {
  return at::clamp(x * alpha + beta, 0.0, 1.0);
}

/// The bound as a number: given as an attribute, or as an input with one element.
c10::optional<at::Scalar> bound(const Call& call, size_t slot, const std::optional<double>& attribute) {
  if (call.has(slot)) {
    const at::Tensor& x = call.in(slot);
    if (x.numel() != 1) fail("a bound has {} elements, expected one", x.numel());
    return x.detach().item();
  }
  return attribute ? c10::optional<at::Scalar>(*attribute) : c10::nullopt;
}

std::optional<at::Tensor> bound_tensor(const Call& call, size_t slot) {
  if (!call.has(slot)) return std::nullopt;
  return call.in(slot).reshape({});
}

at::Tensor clip_tracked(const Call& call) {
  at::Tensor y = call.in(0);
  if (auto low = bound_tensor(call, 1)) y = at::maximum(y, *low);
  if (auto high = bound_tensor(call, 2)) y = at::minimum(y, *high);
  return y;
}

/// What soft-max works on: before opset 13 the input is seen as a matrix that is cut at `axis`.
struct SoftAxis {
  bool as_matrix;
  int64_t axis;

  explicit SoftAxis(const NodeView& node) : as_matrix(node.opset() < 13) {
    axis = node.integer("axis", as_matrix ? 1 : -1);
  }
  template <typename F>
  at::Tensor apply(const at::Tensor& x, F f) const {
    if (!as_matrix) return f(x, axis_in(axis, x.dim()));
    int64_t front = axis == x.dim() ? axis : axis_in(axis, x.dim()), rows = 1;
    for (int64_t i = 0; i < front; ++i) rows = times(rows, x.size(i));
    int64_t columns = 1;
    for (int64_t i = front; i < x.dim(); ++i) columns = times(columns, x.size(i));
    return f(x.reshape({rows, columns}), 1).reshape(x.sizes());
  }
};

template <typename F>
Kernel soft(const NodeView& node, F f) {
  SoftAxis axis(node);
  return unary([=](const at::Tensor& x) { return axis.apply(x, f); });
}

}  // namespace

Kernel relu(const NodeView&) {
  return activation([](const at::Tensor& x) { return at::relu(x); }, [](at::Tensor& x) { at::relu_(x); });
}

Kernel sigmoid(const NodeView&) {
  return activation([](const at::Tensor& x) { return at::sigmoid(x); }, [](at::Tensor& x) { at::sigmoid_(x); });
}

Kernel tanh(const NodeView&) {
  return activation([](const at::Tensor& x) { return at::tanh(x); }, [](at::Tensor& x) { at::tanh_(x); });
}

Kernel leaky_relu(const NodeView& node) {
  double alpha = node.real("alpha", 0.01);
  return activation([=](const at::Tensor& x) { return at::leaky_relu(x, alpha); },
                    [=](at::Tensor& x) { at::leaky_relu_(x, alpha); });
}

Kernel elu(const NodeView& node) {
  double alpha = node.real("alpha", 1.0);
  return activation([=](const at::Tensor& x) { return at::elu(x, alpha); }, [=](at::Tensor& x) { at::elu_(x, alpha); });
}

Kernel celu(const NodeView& node) {
  double alpha = node.real("alpha", 1.0);
  node.require(alpha != 0, "alpha is 0, but the function divides by it");
  return unary([=](const at::Tensor& x) { return at::celu(x, alpha); });
}

Kernel selu(const NodeView& node) {
  double alpha = node.real("alpha", 1.67326319217681884765625), gamma = node.real("gamma", 1.05070102214813232421875);
  return activation([=](const at::Tensor& x) { return at::elu(x, alpha, gamma); },
                    [=](at::Tensor& x) { at::elu_(x, alpha, gamma); });
}

Kernel softplus(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::softplus(x); });
}

Kernel softsign(const NodeView&) {
  return unary([](const at::Tensor& x) { return x / (x.abs() + 1); });
}

Kernel hard_sigmoid(const NodeView& node) {
  double alpha = node.real("alpha", 0.2), beta = node.real("beta", 0.5);
  return activation([=](const at::Tensor& x) { return hard_sigmoid_of(x, alpha, beta); },
                    [=](at::Tensor& x) { x.mul_(alpha).add_(beta).clamp_(0.0, 1.0); });
}

Kernel hard_swish(const NodeView&) {
  return activation([](const at::Tensor& x) { return at::hardswish(x); }, [](at::Tensor& x) { at::hardswish_(x); });
}

Kernel mish(const NodeView&) {
  return activation([](const at::Tensor& x) { return at::mish(x); }, [](at::Tensor& x) { at::mish_(x); });
}

Kernel swish(const NodeView& node) {
  double alpha = node.real("alpha", 1.0);
  return unary([=](const at::Tensor& x) { return alpha == 1 ? at::silu(x) : x * at::sigmoid(x * alpha); });
}

Kernel gelu(const NodeView& node) {
  std::string approximate = node.text("approximate", "none");
  node.require(approximate == "none" || approximate == "tanh", "approximate is {}, expected none or tanh", approximate);
  return unary([=](const at::Tensor& x) { return at::gelu(x, approximate); });
}

/// GELU by tanh or by sigmoid, with an optional bias: what ONNX Runtime's optimiser leaves behind.
Kernel fast_gelu(const NodeView&) {
  return [](Call& call) { call.set(0, at::gelu(call.has(1) ? call.in(0) + call.in(1) : call.in(0), "tanh")); };
}

Kernel bias_gelu(const NodeView&) {
  return [](Call& call) { call.set(0, at::gelu(call.in(0) + call.in(1))); };
}

Kernel quick_gelu(const NodeView& node) {
  double alpha = node.real("alpha", 1.702);
  return unary([=](const at::Tensor& x) { return x * at::sigmoid(x * alpha); });
}

Kernel thresholded_relu(const NodeView& node) {
  double alpha = node.real("alpha", 1.0);
  return unary([=](const at::Tensor& x) { return at::where(x > alpha, x, at::zeros_like(x)); });
}

Kernel shrink(const NodeView& node) {
  double bias = node.real("bias", 0), lambd = node.real("lambd", 0.5);
  return unary([=](const at::Tensor& x) {
    at::Tensor none = at::zeros_like(x);
    return at::where(x < -lambd, x + bias, at::where(x > lambd, x - bias, none)).to(x.scalar_type());
  });
}

Kernel prelu(const NodeView&) {
  return [](Call& call) {
    const at::Tensor& x = call.in(0);
    call.set(0, at::where(x < 0, x * call.in(1), x));
  };
}

Kernel clip(const NodeView& node) {
  std::optional<double> low, high;
  if (node.has("min")) low = node.real("min", 0);
  if (node.has("max")) high = node.real("max", 0);
  return [=](Call& call) {
    bool by_tensor = (call.has(1) && tracked(call.in(1))) || (call.has(2) && tracked(call.in(2)));
    if (by_tensor) return call.set(0, clip_tracked(call));
    auto from = bound(call, 1, low), to = bound(call, 2, high);
    if (!from && !to) return call.set(0, at::alias(call.in(0)));
    if (!overwritable(call, 0)) return call.set(0, at::clamp(call.in(0), from, to).to(call.in(0).scalar_type()));
    at::Tensor x = call.in(0);
    call.set(0, at::clamp_(x, from, to));
  };
}

Kernel softmax(const NodeView& node) {
  return soft(node, [](const at::Tensor& x, int64_t axis) { return at::softmax(x, axis); });
}

Kernel log_softmax(const NodeView& node) {
  return soft(node, [](const at::Tensor& x, int64_t axis) { return at::log_softmax(x, axis); });
}

Kernel hardmax(const NodeView& node) {
  return soft(node, [](const at::Tensor& x, int64_t axis) {
    if (x.size(axis) == 0) return at::zeros_like(x);
    return at::zeros_like(x).scatter(axis, at::argmax(x, axis, true), 1);
  });
}

/// A gate times a value. Not an activation: its operands are two layers.
Kernel swi_glu(const NodeView& node) {
  double alpha = node.real("alpha", 1);
  return [=](Call& call) {
    const at::Tensor &gate = call.in(0), &value = call.in(1);
    if (gate.sizes() != value.sizes()) fail("gate and value differ in shape");
    call.set(0, gate * at::sigmoid(gate * alpha) * value);
  };
}

// clang-format off
std::span<const Op> activation_rows() {
  static constexpr Op kRows[] = {
      {.name = "BiasGelu", .prepare = bias_gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
      {.name = "Celu", .prepare = celu, .kind = Kind::kActivation},
      {.name = "Clip", .prepare = clip, .kind = Kind::kActivation},
      {.name = "Elu", .prepare = elu, .kind = Kind::kActivation},
      {.name = "FastGelu", .prepare = fast_gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
      {.name = "Gelu", .prepare = gelu, .kind = Kind::kActivation},
      {.name = "Gelu", .prepare = gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
      {.name = "HardSigmoid", .prepare = hard_sigmoid, .kind = Kind::kActivation},
      {.name = "HardSwish", .prepare = hard_swish, .kind = Kind::kActivation},
      {.name = "Hardmax", .prepare = hardmax, .differentiable = false},
      {.name = "LeakyRelu", .prepare = leaky_relu, .kind = Kind::kActivation},
      {.name = "LogSoftmax", .prepare = log_softmax},
      {.name = "Mish", .prepare = mish, .kind = Kind::kActivation},
      {.name = "PRelu", .prepare = prelu, .kind = Kind::kActivation},
      {.name = "QuickGelu", .prepare = quick_gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
      {.name = "Relu", .prepare = relu, .kind = Kind::kActivation},
      {.name = "Selu", .prepare = selu, .kind = Kind::kActivation},
      {.name = "Shrink", .prepare = shrink, .kind = Kind::kActivation},
      {.name = "Sigmoid", .prepare = sigmoid, .kind = Kind::kActivation},
      {.name = "Softmax", .prepare = softmax},
      {.name = "Softplus", .prepare = softplus, .kind = Kind::kActivation},
      {.name = "Softsign", .prepare = softsign, .kind = Kind::kActivation},
      {.name = "SwiGLU", .prepare = swi_glu},
      {.name = "Swish", .prepare = swish, .kind = Kind::kActivation},
      {.name = "Tanh", .prepare = tanh, .kind = Kind::kActivation},
      {.name = "ThresholdedRelu", .prepare = thresholded_relu, .kind = Kind::kActivation},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
