// Operators on the bits of integers, and on the bits of anything.
#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

using model::Element;
using Binary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

Kernel bitwise(Binary f) {
  return [f](Call& call) { call.set(0, f(call.in(0), call.in(1))); };
}

/// The type that the file stores, as declared, else that of the tensor that carries it.
Element type_of(Element declared, const at::Tensor& x) {
  return declared == Element::kUndefined ? model::element_of(x.scalar_type()) : declared;
}

/// An integer of 64 bits as one of the file's type: bits beyond its width are dropped. A uint64 is carried with a sign.
at::Tensor wrapped(const Call& call, const at::Tensor& x, Element type) {
  if (type == Element::kUint64 && at::any(x < 0).item<bool>())
    fail("a uint64 would exceed {}: netmend computes with int64", INT64_MAX);
  return cast_to(call, x, type);
}

at::Tensor whole(const at::Tensor& x) {
  if (!at::isIntegralType(x.scalar_type(), false)) fail("the operands must be integers");
  return x.to(at::kLong);
}

/// Shifts by less than 0 or more than the width leave nothing but the sign.
at::Tensor shifted(const at::Tensor& x, const at::Tensor& by, int64_t bits, bool left) {
  at::Tensor beyond = (by < 0).logical_or(by >= bits), count = by.masked_fill(beyond, 0);
  at::Tensor y = left ? at::bitwise_left_shift(x, count) : at::bitwise_right_shift(x, count);
  at::Tensor rest = left ? at::zeros_like(y) : at::where(x < 0, -at::ones_like(y), at::zeros_like(y));
  return at::where(beyond, rest, y);
}

}  // namespace

Kernel bitwise_and(const NodeView&) { return bitwise(at::bitwise_and); }
Kernel bitwise_or(const NodeView&) { return bitwise(at::bitwise_or); }
Kernel bitwise_xor(const NodeView&) { return bitwise(at::bitwise_xor); }

Kernel bitwise_not(const NodeView& node) {
  Element declared = node.declared_type(0);
  return [=](Call& call) {
    call.set(0, wrapped(call, at::bitwise_not(whole(call.in(0))), type_of(declared, call.in(0))));
  };
}

Kernel bit_shift(const NodeView& node) {
  std::string direction = node.text("direction", "");
  node.require(direction == "LEFT" || direction == "RIGHT", "direction is '{}', expected LEFT or RIGHT", direction);
  Element declared = node.declared_type(0);
  return [=](Call& call) {
    Element type = type_of(declared, call.in(0));
    int64_t bits = model::stored_bits(type);
    call.set(0, wrapped(call, shifted(whole(call.in(0)), whole(call.in(1)), bits, direction == "LEFT"), type));
  };
}

/// Needs the type in the file: several are carried by one type of ours.
Kernel bit_cast(const NodeView& node) {
  Element from = node.declared_type(0), to = Element(node.integer("to", 0));
  node.require(model::supported(from),
               "the file does not say which type the input has ({}): run ONNX's shape inference",
               model::element_name(from));
  node.require(model::supported(to), "casts to {}, which is not supported", model::element_name(to));
  node.require(model::stored_bits(from) == model::stored_bits(to), "{} and {} differ in size",
               model::element_name(from), model::element_name(to));
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    at::Tensor y = model::decode(to, {x.sizes().data(), x.sizes().size()}, model::encode(from, x));
    call.set(0, y.to(x.device(), run_type(call, to)));
  };
}

// clang-format off
std::span<const Op> bits_rows() {
  static constexpr Op kRows[] = {
      {.name = "BitCast", .prepare = bit_cast, .differentiable = false},
      {.name = "BitShift", .prepare = bit_shift, .differentiable = false},
      {.name = "BitwiseAnd", .prepare = bitwise_and, .differentiable = false},
      {.name = "BitwiseNot", .prepare = bitwise_not, .differentiable = false},
      {.name = "BitwiseOr", .prepare = bitwise_or, .differentiable = false},
      {.name = "BitwiseXor", .prepare = bitwise_xor, .differentiable = false},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
