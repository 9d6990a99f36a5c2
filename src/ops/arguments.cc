#include "ops/arguments.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>

#include "model/small_float.h"

namespace netmend::ops {
namespace {

constexpr int64_t kLongestList = 4096;  // no shape, axis list or pad list is longer; a file that says so is broken

at::Tensor list_of(const at::Tensor& tensor, std::string_view what, at::ScalarType type) {
  if (tensor.dim() > 1) fail("{} has {} axes, expected a list", what, tensor.dim());
  if (tensor.numel() > kLongestList) fail("{} has {} elements", what, tensor.numel());
  return tensor.detach().to(at::kCPU, type).contiguous();
}

at::Tensor only_element(const at::Tensor& tensor, std::string_view what) {
  if (tensor.numel() != 1) fail("{} has {} elements, expected one", what, tensor.numel());
  return tensor.detach();
}

}  // namespace

std::vector<int64_t> integers_of(const at::Tensor& tensor, std::string_view what) {
  if (!at::isIntegralType(tensor.scalar_type(), false)) fail("{} must be integers", what);
  at::Tensor list = list_of(tensor, what, at::kLong);
  const int64_t* data = list.data_ptr<int64_t>();
  return {data, data + list.numel()};
}

std::vector<double> reals_of(const at::Tensor& tensor, std::string_view what) {
  at::Tensor list = list_of(tensor, what, at::kDouble);
  const double* data = list.data_ptr<double>();
  return {data, data + list.numel()};
}

int64_t integer_of(const at::Tensor& tensor, std::string_view what) {
  if (!at::isIntegralType(tensor.scalar_type(), true)) fail("{} must be an integer", what);
  return only_element(tensor, what).item<int64_t>();
}

double real_of(const at::Tensor& tensor, std::string_view what) { return only_element(tensor, what).item<double>(); }

int64_t axis_in(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) fail("axis {} is out of range for a tensor with {} axes", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> axes_in(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) {
    int64_t front = axis_in(axis, rank);
    if (std::find(result.begin(), result.end(), front) != result.end()) fail("axis {} is given twice", front);
    result.push_back(front);
  }
  return result;
}

std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> result(rank);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

int64_t plus(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) fail("a size overflows");
  return result;
}

int64_t times(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) fail("a size overflows");
  return result;
}

ListArgument::ListArgument(const NodeView& node, std::string_view attribute, size_t slot)
    : name_(attribute), slot_(slot) {
  if (node.has(attribute)) attribute_ = node.integers(attribute);
}

std::optional<std::vector<int64_t>> ListArgument::in(const Call& call) const {
  if (call.has(slot_)) return integers_of(call.in(slot_), name_);
  return attribute_;
}

bool tracked(const at::Tensor& tensor) { return at::GradMode::is_enabled() && tensor.requires_grad(); }

bool overwritable(const Call& call, size_t i) {
  if (!call.spare(i)) return false;
  const at::Tensor& x = call.in(i);
  return x.is_non_overlapping_and_dense() && !x.requires_grad() && x.storage().use_count() == 1;
}

at::ScalarType run_type(const Call& call, model::Element type) {
  if (!model::supported(type)) fail("elements of {} are not supported", model::element_name(type));
  at::ScalarType carrier = model::carrier(type);
  return carrier == at::kFloat ? call.real() : carrier;
}

namespace {

/// The lowest bits of an integer, as a number with or without a sign.
at::Tensor lowest_bits(const at::Tensor& x, int64_t bits, bool with_sign) {
  int64_t count = int64_t(1) << bits, half = with_sign ? count / 2 : 0;
  at::Tensor whole = x.to(at::kLong);
  return at::bitwise_and(whole + half, count - 1) - half;
}

}  // namespace

at::Tensor rounded_as(const at::Tensor& x, model::Element type, const model::Narrowing& how) {
  if (type == model::Element::kFloat16) return x.to(at::kHalf).to(x.scalar_type());
  if (type == model::Element::kBFloat16) return x.to(at::kBFloat16).to(x.scalar_type());
  if (!model::is_small_float(type)) return x;
  at::Tensor y = model::narrowed(type, x, how);
  return tracked(x) ? y + (x - x.detach()) : y;  // the gradient passes, as it passes other casts
}

at::Tensor cast_to(const Call& call, const at::Tensor& x, model::Element type, const model::Narrowing& how) {
  using model::Element;
  at::ScalarType result = run_type(call, type);
  switch (type) {
    case Element::kUint16:
    case Element::kUint32:
    case Element::kUint4:
    case Element::kUint2:
      return lowest_bits(x, model::stored_bits(type), false).to(result);
    case Element::kInt4:
    case Element::kInt2:
      return lowest_bits(x, model::stored_bits(type), true).to(result);
    default:
      return rounded_as(x.to(x.is_floating_point() ? x.scalar_type() : result), type, how).to(result);
  }
}

}  // namespace netmend::ops
