#include "ops/arguments.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>

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

at::Tensor cast_to(const Call& call, const at::Tensor& x, model::Element type) {
  using model::Element;
  at::ScalarType result = run_type(call, type);
  switch (type) {
    case Element::kFloat16:
      return x.to(at::kHalf).to(result);
    case Element::kBFloat16:
      return x.to(at::kBFloat16).to(result);
    case Element::kUint16:
      return x.to(at::kLong).bitwise_and(0xffff).to(result);
    case Element::kUint32:
      return x.to(at::kLong).bitwise_and(int64_t(0xffffffff));
    default:
      return x.to(result);
  }
}

}  // namespace netmend::ops
