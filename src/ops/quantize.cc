// Linear quantisation, and the operators on quantised tensors that exporters emit. Products of small integers are taken
// in double precision, where they and their sums are exact.
#include <algorithm>
#include <cmath>

#include "model/small_float.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

struct Limits {
  at::ScalarType type;
  double low, high;
};

/// The integer type of a quantised tensor from its declaration, else from the tensor that carries its zero point.
Limits limits_of(model::Element declared, at::ScalarType carrier) {
  using model::Element;
  if (declared == Element::kUndefined) declared = carrier == at::kInt ? Element::kUint16 : model::element_of(carrier);
  switch (declared) {
    case Element::kUint8:
      return {at::kByte, 0, 255};
    case Element::kInt8:
      return {at::kChar, -128, 127};
    case Element::kUint16:
      return {at::kInt, 0, 65535};
    case Element::kInt16:
      return {at::kShort, -32768, 32767};
    case Element::kUint4:
      return {at::kByte, 0, 15};
    case Element::kInt4:
      return {at::kChar, -8, 7};
    case Element::kUint2:
      return {at::kByte, 0, 3};
    case Element::kInt2:
      return {at::kChar, -2, 1};
    default:
      fail("quantised to {}, expected integers of 2, 4, 8 or 16 bits", model::element_name(declared));
  }
}

/// Parameters of quantisation spread over x: one for all, one for each slice along the axis, or one for each block.
at::Tensor spread(const at::Tensor& p, const at::Tensor& x, int64_t axis, int64_t block) {
  if (p.numel() == 1 && block == 0) return p.reshape({});
  int64_t along = axis_in(axis, x.dim());
  if (block > 0) {
    if (p.dim() != x.dim()) fail("a blocked scale has {} axes, the input has {}", p.dim(), x.dim());
    int64_t blocks = (x.size(along) + block - 1) / block;
    if (p.size(along) != blocks) fail("a blocked scale has {} blocks, expected {}", p.size(along), blocks);
    at::Tensor index = at::arange(x.size(along), x.options().dtype(at::kLong)).div(block, "floor");
    return at::index_select(p, along, index);
  }
  if (p.dim() != 1 || p.size(0) != x.size(along)) fail("{} scales for an axis of {}", p.numel(), x.size(along));
  std::vector<int64_t> shape(x.dim(), 1);
  shape[along] = p.size(0);
  return p.reshape(shape);
}

struct QuantForm {
  int64_t axis, block;
  model::Element output;

  explicit QuantForm(const NodeView& node)
      : axis(node.integer("axis", 1)),
        block(node.integer("block_size", 0)),
        output(model::Element(node.integer("output_dtype", 0))) {
    node.require(block >= 0, "block_size is {}", block);
    node.require(output == model::Element::kUndefined || model::supported(output), "output_dtype is {}",
                 model::element_name(output));
  }
};

at::Tensor saturated(const at::Tensor& x, const Limits& limits) {
  return at::clamp(x, limits.low, limits.high).to(limits.type);
}

/// Rounds halves to even, as everywhere in ONNX.
at::Tensor quantized(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero, const Limits& limits) {
  at::Tensor y = at::round(x.to(scale.scalar_type()) / scale);
  return saturated(zero.defined() ? y + zero.to(y.scalar_type()) : y, limits);
}

at::Tensor dequantized(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero) {
  at::ScalarType wide = x.is_floating_point() ? x.scalar_type() : at::kLong;
  at::Tensor centred = zero.defined() ? x.to(wide) - zero.to(wide) : x;
  return centred.to(scale.scalar_type()) * scale;
}

at::Tensor centred(const at::Tensor& x, const at::Tensor& zero) {
  at::Tensor wide = x.to(at::kDouble);
  return zero.defined() ? wide - zero.to(at::kDouble) : wide;
}

at::Tensor optional_input(const Call& call, size_t i) { return call.has(i) ? call.in(i) : at::Tensor(); }

/// Zero points of rows of the left operand (or of its whole) stand along its last axis but one.
at::Tensor for_rows(const at::Tensor& zero) {
  return zero.defined() && zero.dim() == 1 && zero.numel() > 1 ? zero.unsqueeze(1) : zero;
}

/// One zero point or scale per filter.
at::Tensor for_filters(const at::Tensor& p, const at::Tensor& w) {
  if (!p.defined() || p.numel() == 1) return p.defined() ? p.reshape({}) : p;
  std::vector<int64_t> shape(w.dim(), 1);
  shape[0] = p.numel();
  return p.reshape(shape);
}

at::Tensor for_channels(const at::Tensor& p, const at::Tensor& y) {
  if (p.numel() == 1) return p.reshape({});
  std::vector<int64_t> shape(y.dim(), 1);
  shape[1] = p.numel();
  return p.reshape(shape);
}

/// A float convolution on other operands than the call's: its kernel gets a call of its own.
at::Tensor convolved(const Kernel& convolution, const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  std::array<at::Tensor, 3> inputs{x, w, bias};
  std::array<at::Tensor, 1> outputs;
  Call inner(inputs, outputs);
  convolution(inner);
  return outputs[0];
}

}  // namespace

Kernel quantize_linear(const NodeView& node) {
  QuantForm form(node);
  model::Element declared = form.output != model::Element::kUndefined ? form.output : node.declared_type(2);
  model::Narrowing how{.saturate = node.integer("saturate", 1) != 0};
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    at::Tensor zero = optional_input(call, 2), scale = spread(call.in(1), x, form.axis, form.block);
    if (model::is_small_float(declared)) {  // their zero point is 0
      at::Tensor y = rounded_as(x.to(scale.scalar_type()) / scale, declared, how);
      return call.set(0, y.to(run_type(call, declared)));
    }
    Limits limits = limits_of(declared, zero.defined() ? zero.scalar_type() : at::kByte);
    call.set(0, quantized(x, scale, zero.defined() ? spread(zero, x, form.axis, form.block) : zero, limits));
  };
}

Kernel dequantize_linear(const NodeView& node) {
  QuantForm form(node);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    at::Tensor zero = optional_input(call, 2), scale = spread(call.in(1), x, form.axis, form.block);
    at::Tensor y = dequantized(x, scale, zero.defined() ? spread(zero, x, form.axis, form.block) : zero);
    call.set(0, form.output == model::Element::kUndefined ? y : cast_to(call, y, form.output));
  };
}

Kernel dynamic_quantize_linear(const NodeView&) {
  return [](Call& call) {
    const at::Tensor& x = call.in(0);
    if (x.numel() == 0) fail("the input is empty");
    at::Tensor low = at::amin(x).clamp_max(0), high = at::amax(x).clamp_min(0), scale = (high - low) / 255;
    at::Tensor zero = at::round(at::clamp(-low / scale, 0, 255)).nan_to_num(0).to(at::kByte);
    call.set(0, at::where(scale == 0, zero, quantized(x, scale, zero, {at::kByte, 0, 255})));
    call.set(1, scale);
    call.set(2, zero);
  };
}

Kernel matmul_integer(const NodeView&) {
  return [](Call& call) {
    at::Tensor a = centred(call.in(0), for_rows(optional_input(call, 2))),
               b = centred(call.in(1), optional_input(call, 3));
    call.set(0, at::matmul(a, b).to(at::kInt));
  };
}

Kernel qlinear_matmul(const NodeView& node) {
  model::Element declared = node.declared_type(7);
  return [=](Call& call) {
    at::Tensor a = centred(call.in(0), for_rows(call.in(2))) * for_rows(call.in(1)).to(at::kDouble);
    at::Tensor b = centred(call.in(3), call.in(5)) * call.in(4).to(at::kDouble);
    Limits limits = limits_of(declared, call.in(7).scalar_type());
    call.set(0, quantized(at::matmul(a, b), call.in(6).to(at::kDouble), call.in(7), limits));
  };
}

Kernel conv_integer(const NodeView& node) {
  Kernel convolution = conv(node);
  return [=](Call& call) {
    at::Tensor x = centred(call.in(0), optional_input(call, 2));
    at::Tensor w = centred(call.in(1), for_filters(optional_input(call, 3), call.in(1)));
    call.set(0, convolved(convolution, x, w, at::Tensor()).to(at::kInt));
  };
}

Kernel qlinear_conv(const NodeView& node) {
  Kernel convolution = conv(node);
  model::Element declared = node.declared_type(7);
  return [=](Call& call) {
    at::Tensor x = centred(call.in(0), call.in(2)), w = centred(call.in(3), for_filters(call.in(5), call.in(3)));
    at::Tensor bias = call.has(8) ? call.in(8).to(at::kDouble) : at::Tensor();
    at::Tensor y = convolved(convolution, x, w, bias);
    at::Tensor factor = call.in(1).to(at::kDouble) * for_channels(call.in(4).to(at::kDouble), y);
    Limits limits = limits_of(declared, call.in(7).scalar_type());
    call.set(0, quantized(y * factor, call.in(6).to(at::kDouble), call.in(7), limits));
  };
}

// clang-format off
std::span<const Op> quantize_rows() {
  static constexpr Op kRows[] = {
      {.name = "ConvInteger", .prepare = conv_integer, .differentiable = false},
      {.name = "DequantizeLinear", .prepare = dequantize_linear},
      {.name = "DynamicQuantizeLinear", .prepare = dynamic_quantize_linear, .differentiable = false},
      {.name = "MatMulInteger", .prepare = matmul_integer, .differentiable = false},
      {.name = "QLinearConv", .prepare = qlinear_conv, .differentiable = false},
      {.name = "QLinearMatMul", .prepare = qlinear_matmul, .differentiable = false},
      {.name = "QuantizeLinear", .prepare = quantize_linear, .differentiable = false},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
