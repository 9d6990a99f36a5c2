// Operators on each element: functions of one value, arithmetic, comparisons, logic, and the ones that take many
// operands.
#include <ATen/ExpandUtils.h>

#include <cmath>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

using Function = at::Tensor (*)(const at::Tensor&);
using Overwrite = at::Tensor& (*)(at::Tensor&);
using Binary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

Kernel function(Function plain, Overwrite in_place) {
  return [=](Call& call) {
    if (!overwritable(call, 0)) return call.set(0, plain(call.in(0)));
    at::Tensor x = call.in(0);
    call.set(0, in_place(x));
  };
}

/// The operand whose memory can hold the result of both, or -1.
int holder(const Call& call, bool either) {
  const at::Tensor &a = call.in(0), &b = call.in(1);
  if (a.scalar_type() != b.scalar_type()) return -1;
  if (overwritable(call, 0) && at::is_expandable_to(b.sizes(), a.sizes())) return 0;
  if (either && overwritable(call, 1) && at::is_expandable_to(a.sizes(), b.sizes())) return 1;
  return -1;
}

at::Tensor add_plain(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor sub_plain(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }

/// The signed types in which lowest ÷ −1 does not fit and stops the processor.
bool division_traps(const at::Tensor& x) { return x.scalar_type() == at::kInt || x.scalar_type() == at::kLong; }

void refuse_zero(const at::Tensor& divisor) {
  if (at::any(divisor == 0).item<bool>()) fail("integer division by zero");
}

/// Rounds towards zero, as in C; lowest ÷ −1 wraps around to lowest.
at::Tensor divide_integers(const at::Tensor& a, const at::Tensor& b) {
  refuse_zero(b);
  if (!division_traps(b)) return at::div(a, b, "trunc");
  at::Tensor negates = b == -1;
  return at::where(negates, at::neg(a), at::div(a, b.masked_fill(negates, 1), "trunc"));
}

at::Tensor remainder_integers(const at::Tensor& a, const at::Tensor& b, bool sign_of_dividend) {
  refuse_zero(b);
  at::Tensor divisor = division_traps(b) ? b.masked_fill(b == -1, 1) : b;  // both leave no remainder
  return sign_of_dividend ? at::fmod(a, divisor) : at::remainder(a, divisor);
}

at::Tensor power(const at::Tensor& base, const at::Tensor& exponent) {
  at::ScalarType type = base.scalar_type();
  bool whole = at::isIntegralType(type, true) && at::isIntegralType(exponent.scalar_type(), true);
  if (exponent.numel() == 1 && exponent.dim() <= base.dim() && !tracked(exponent) && !whole) {
    double scalar = real_of(exponent, "exponent");
    if (base.is_floating_point()) return at::pow(base, scalar);
    return at::pow(base.to(at::kDouble), scalar).to(type);
  }
  if (base.is_floating_point()) return at::pow(base, exponent.to(type));
  if (whole) return at::pow(base.to(at::kLong), exponent.to(at::kLong)).to(type);
  return at::pow(base.to(at::kDouble), exponent.to(at::kDouble)).to(type);
}

Kernel compare(Binary f) {
  return [f](Call& call) { call.set(0, f(call.in(0), call.in(1))); };
}

Kernel logic(Binary f) {
  return [f](Call& call) { call.set(0, f(call.in(0).to(at::kBool), call.in(1).to(at::kBool))); };
}

/// Folds all inputs with one operator; the first one alone is the result of one.
at::Tensor fold(const Call& call, Binary f) {
  at::Tensor result = call.in(0);
  for (size_t i = 1; i < call.inputs(); ++i) result = f(result, call.in(i));
  return call.inputs() == 1 ? at::alias(result) : result;
}

Kernel variadic(const NodeView& node, Binary f) {
  node.require(node.inputs() > 0, "has no inputs");
  return [f](Call& call) { call.set(0, fold(call, f)); };
}

}  // namespace

Kernel abs(const NodeView&) { return function(at::abs, at::abs_); }
Kernel acos(const NodeView&) { return function(at::acos, at::acos_); }
Kernel acosh(const NodeView&) { return function(at::acosh, at::acosh_); }
Kernel asin(const NodeView&) { return function(at::asin, at::asin_); }
Kernel asinh(const NodeView&) { return function(at::asinh, at::asinh_); }
Kernel atan(const NodeView&) { return function(at::atan, at::atan_); }
Kernel atanh(const NodeView&) { return function(at::atanh, at::atanh_); }
Kernel ceil(const NodeView&) { return function(at::ceil, at::ceil_); }
Kernel cos(const NodeView&) { return function(at::cos, at::cos_); }
Kernel cosh(const NodeView&) { return function(at::cosh, at::cosh_); }
Kernel erf(const NodeView&) { return function(at::erf, at::erf_); }
Kernel exp(const NodeView&) { return function(at::exp, at::exp_); }
Kernel floor(const NodeView&) { return function(at::floor, at::floor_); }
Kernel log(const NodeView&) { return function(at::log, at::log_); }
Kernel neg(const NodeView&) { return function(at::neg, at::neg_); }
Kernel reciprocal(const NodeView&) { return function(at::reciprocal, at::reciprocal_); }
Kernel round(const NodeView&) { return function(at::round, at::round_); }  // halves to even, as ONNX asks
Kernel sign(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::sign(x); });
}
Kernel sin(const NodeView&) { return function(at::sin, at::sin_); }
Kernel sinh(const NodeView&) { return function(at::sinh, at::sinh_); }
Kernel sqrt(const NodeView&) { return function(at::sqrt, at::sqrt_); }
Kernel tan(const NodeView&) { return function(at::tan, at::tan_); }

Kernel add(const NodeView&) {
  return [](Call& call) {
    int held = holder(call, true);
    if (held < 0) return call.set(0, add_plain(call.in(0), call.in(1)));
    at::Tensor x = call.in(held);
    call.set(0, x.add_(call.in(1 - held)));
  };
}

Kernel sub(const NodeView&) {
  return [](Call& call) {
    if (holder(call, false) < 0) return call.set(0, sub_plain(call.in(0), call.in(1)));
    at::Tensor x = call.in(0);
    call.set(0, x.sub_(call.in(1)));
  };
}

Kernel mul(const NodeView&) {
  return [](Call& call) {
    int held = holder(call, true);
    if (held < 0) return call.set(0, at::mul(call.in(0), call.in(1)));
    at::Tensor x = call.in(held);
    call.set(0, x.mul_(call.in(1 - held)));
  };
}

Kernel div(const NodeView&) {
  return [](Call& call) {
    const at::Tensor &a = call.in(0), &b = call.in(1);
    if (at::isIntegralType(a.scalar_type(), true)) return call.set(0, divide_integers(a, b));
    if (holder(call, false) < 0) return call.set(0, at::div(a, b));
    at::Tensor x = a;
    call.set(0, x.div_(b));
  };
}

Kernel mod(const NodeView& node) {
  bool sign_of_dividend = node.integer("fmod", 0) != 0;
  return [=](Call& call) {
    const at::Tensor &a = call.in(0), &b = call.in(1);
    if (at::isIntegralType(a.scalar_type(), true)) return call.set(0, remainder_integers(a, b, sign_of_dividend));
    call.set(0, sign_of_dividend ? at::fmod(a, b) : at::remainder(a, b));
  };
}

Kernel pow(const NodeView&) {
  return [](Call& call) { call.set(0, power(call.in(0), call.in(1))); };
}

Kernel equal(const NodeView&) { return compare(at::eq); }
Kernel greater(const NodeView&) { return compare(at::gt); }
Kernel greater_or_equal(const NodeView&) { return compare(at::ge); }
Kernel less(const NodeView&) { return compare(at::lt); }
Kernel less_or_equal(const NodeView&) { return compare(at::le); }

Kernel logical_and(const NodeView&) { return logic(at::logical_and); }
Kernel logical_or(const NodeView&) { return logic(at::logical_or); }
Kernel logical_xor(const NodeView&) { return logic(at::logical_xor); }
Kernel logical_not(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::logical_not(x); });
}

Kernel is_nan(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::isnan(x); });
}

Kernel is_inf(const NodeView& node) {
  bool negative = node.integer("detect_negative", 1) != 0, positive = node.integer("detect_positive", 1) != 0;
  return unary([=](const at::Tensor& x) {
    if (negative && positive) return at::isinf(x);
    if (negative) return at::isneginf(x);
    return positive ? at::isposinf(x) : at::zeros(x.sizes(), x.options().dtype(at::kBool));
  });
}

Kernel max(const NodeView& node) { return variadic(node, at::maximum); }
Kernel min(const NodeView& node) { return variadic(node, at::minimum); }
Kernel sum(const NodeView& node) { return variadic(node, add_plain); }

Kernel mean(const NodeView& node) {
  node.require(node.inputs() > 0, "has no inputs");
  return [](Call& call) { call.set(0, fold(call, add_plain) / double(call.inputs())); };
}

Kernel where(const NodeView&) {
  return [](Call& call) { call.set(0, at::where(call.in(0).to(at::kBool), call.in(1), call.in(2))); };
}

// clang-format off
std::span<const Op> elementwise_rows() {
  static constexpr Op kRows[] = {
      {.name = "Abs", .prepare = abs},
      {.name = "Acos", .prepare = acos},
      {.name = "Acosh", .prepare = acosh},
      {.name = "Add", .prepare = add, .kind = Kind::kBias},
      {.name = "And", .prepare = logical_and, .differentiable = false},
      {.name = "Asin", .prepare = asin},
      {.name = "Asinh", .prepare = asinh},
      {.name = "Atan", .prepare = atan},
      {.name = "Atanh", .prepare = atanh},
      {.name = "Ceil", .prepare = ceil, .differentiable = false},
      {.name = "Cos", .prepare = cos},
      {.name = "Cosh", .prepare = cosh},
      {.name = "Div", .prepare = div},
      {.name = "Equal", .prepare = equal, .differentiable = false},
      {.name = "Erf", .prepare = erf},
      {.name = "Exp", .prepare = exp},
      {.name = "Floor", .prepare = floor, .differentiable = false},
      {.name = "Greater", .prepare = greater, .differentiable = false},
      {.name = "GreaterOrEqual", .prepare = greater_or_equal, .differentiable = false},
      {.name = "IsInf", .prepare = is_inf, .differentiable = false},
      {.name = "IsNaN", .prepare = is_nan, .differentiable = false},
      {.name = "Less", .prepare = less, .differentiable = false},
      {.name = "LessOrEqual", .prepare = less_or_equal, .differentiable = false},
      {.name = "Log", .prepare = log},
      {.name = "Max", .prepare = max},
      {.name = "Mean", .prepare = mean},
      {.name = "Min", .prepare = min},
      {.name = "Mod", .prepare = mod},
      {.name = "Mul", .prepare = mul},
      {.name = "Neg", .prepare = neg},
      {.name = "Not", .prepare = logical_not, .differentiable = false},
      {.name = "Or", .prepare = logical_or, .differentiable = false},
      {.name = "Pow", .prepare = pow},
      {.name = "Reciprocal", .prepare = reciprocal},
      {.name = "Round", .prepare = round, .differentiable = false},
      {.name = "Sign", .prepare = sign, .differentiable = false},
      {.name = "Sin", .prepare = sin},
      {.name = "Sinh", .prepare = sinh},
      {.name = "Sqrt", .prepare = sqrt},
      {.name = "Sub", .prepare = sub},
      {.name = "Sum", .prepare = sum},
      {.name = "Tan", .prepare = tan},
      {.name = "Where", .prepare = where},
      {.name = "Xor", .prepare = logical_xor, .differentiable = false},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
