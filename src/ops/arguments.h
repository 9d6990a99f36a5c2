// What every operator needs to read its arguments safely: files come from strangers, so axes, sizes and lists are
// checked before they are used. All of these throw InputError.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace netmend::ops {

/// The elements of an integer tensor with at most one axis: shapes, axes, pads …
std::vector<int64_t> integers_of(const at::Tensor& tensor, std::string_view what);
/// The elements of a tensor of numbers with at most one axis.
std::vector<double> reals_of(const at::Tensor& tensor, std::string_view what);
/// The only element of a tensor.
int64_t integer_of(const at::Tensor& tensor, std::string_view what);
double real_of(const at::Tensor& tensor, std::string_view what);

/// The axis counted from the front; a negative one counts from the end.
int64_t axis_in(int64_t axis, int64_t rank);
/// The same for several, which must differ.
std::vector<int64_t> axes_in(const std::vector<int64_t>& axes, int64_t rank);
/// 0 … rank−1
std::vector<int64_t> all_axes(int64_t rank);

/// Sizes computed from a file's numbers must not overflow.
int64_t plus(int64_t a, int64_t b);
int64_t times(int64_t a, int64_t b);

/// A list that older opsets give as an attribute and newer ones as an input; the input of the call wins.
class ListArgument {
 public:
  ListArgument(const NodeView& node, std::string_view attribute, size_t slot);
  std::optional<std::vector<int64_t>> in(const Call& call) const;

 private:
  std::string name_;
  size_t slot_;
  std::optional<std::vector<int64_t>> attribute_;
};

/// A gradient will be asked through this tensor.
bool tracked(const at::Tensor& tensor);
/// in(i) may be overwritten with a result of its own shape and type: the call gives it away, every byte of its memory
/// belongs to it once, and no other tensor looks at that memory.
bool overwritable(const Call& call, size_t i);

/// The type that values of a file's type have in this run.
at::ScalarType run_type(const Call& call, model::Element type);
/// Values moved to a type of the file: rounded through half precision or less, wrapped to the width of an integer.
at::Tensor cast_to(const Call& call, const at::Tensor& x, model::Element type, const model::Narrowing& how = {});
/// Floats as a file's type of half precision or less would hold them; others, and of unknown type, as they are.
at::Tensor rounded_as(const at::Tensor& x, model::Element type, const model::Narrowing& how = {});

/// A kernel of one input and one output.
template <typename F>
Kernel unary(F f) {
  return [f = std::move(f)](Call& call) { call.set(0, f(call.in(0))); };
}

}  // namespace netmend::ops
