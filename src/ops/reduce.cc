// Reductions over axes, positions of extremes, order, running sums and products.
#include <limits>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

/// `f` reduces x over a non-empty list of distinct axes.
using Reduction = at::Tensor (*)(const at::Tensor& x, at::IntArrayRef axes, bool keep);

/// What a reduction of one element is: an empty list of axes leaves only the function that goes with it.
using Alone = at::Tensor (*)(const at::Tensor& x);

at::Tensor itself(const at::Tensor& x) { return at::alias(x); }

Kernel reduction(const NodeView& node, Reduction f, Alone alone = itself) {
  ListArgument axes(node, "axes", 1);
  bool keep = node.integer("keepdims", 1) != 0, nothing = node.integer("noop_with_empty_axes", 0) != 0;
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    std::vector<int64_t> over = axes_in(axes.in(call).value_or(std::vector<int64_t>{}), x.dim());
    if (over.empty() && nothing) return call.set(0, alone(x));
    if (over.empty()) over = all_axes(x.dim());
    call.set(0, over.empty() ? alone(x) : f(x, over, keep));
  };
}

at::Tensor sum_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  return at::sum(x, axes, keep, x.scalar_type());
}

at::Tensor mean_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  if (x.is_floating_point()) return at::mean(x, axes, keep);
  return at::mean(x.to(at::kDouble), axes, keep).to(x.scalar_type());
}

/// Floating point for functions that integers lack.
at::Tensor as_real(const at::Tensor& x) { return x.is_floating_point() ? x : x.to(at::kDouble); }

at::Tensor l1_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) { return sum_over(x.abs(), axes, keep); }

at::Tensor l2_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  return at::norm(as_real(x), 2, axes, keep).to(x.scalar_type());
}

at::Tensor log_sum_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  return at::log(as_real(sum_over(x, axes, keep))).to(x.scalar_type());
}

at::Tensor log_sum_exp_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  return at::logsumexp(as_real(x), axes, keep).to(x.scalar_type());
}

at::Tensor sum_square_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) { return sum_over(x * x, axes, keep); }

at::Tensor prod_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  at::Tensor result = x;
  for (int64_t axis : axes) result = at::prod(result, axis, true, x.scalar_type());
  if (keep) return result;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) sizes.push_back(x.size(i));
  }
  return result.reshape(sizes);
}

/// The largest and smallest values of a type, infinite where the type has infinities.
at::Scalar limit(at::ScalarType type, bool lowest) {
  switch (type) {
    case at::kBool:
      return !lowest;
    case at::kByte:
      return lowest ? 0 : 255;
    case at::kChar:
      return lowest ? -128 : 127;
    case at::kShort:
      return lowest ? -32768 : 32767;
    case at::kInt:
      return lowest ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max();
    case at::kLong:
      return lowest ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    default:
      return lowest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
}

/// LibTorch refuses the extreme of nothing; ONNX says it is the type's own limit.
at::Tensor extreme_of_nothing(const at::Tensor& x, at::IntArrayRef axes, bool keep, bool lowest) {
  at::Tensor shape = at::sum(x.to(at::kDouble), axes, keep);
  return at::full(shape.sizes(), limit(x.scalar_type(), lowest), x.options());
}

bool reduces_nothing(const at::Tensor& x, at::IntArrayRef axes) {
  return std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return x.size(axis) == 0; });
}

at::Tensor max_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  return reduces_nothing(x, axes) ? extreme_of_nothing(x, axes, keep, true) : at::amax(x, axes, keep);
}

at::Tensor min_over(const at::Tensor& x, at::IntArrayRef axes, bool keep) {
  return reduces_nothing(x, axes) ? extreme_of_nothing(x, axes, keep, false) : at::amin(x, axes, keep);
}

/// Position of the first (or last) extreme.
at::Tensor position(const at::Tensor& x, int64_t axis, bool keep, bool last, bool largest) {
  at::Tensor seen = last ? at::flip(x, axis) : x;
  if (seen.scalar_type() == at::kBool) seen = seen.to(at::kByte);
  at::Tensor index = largest ? at::argmax(seen, axis, keep) : at::argmin(seen, axis, keep);
  return last ? x.size(axis) - 1 - index : index;
}

Kernel position_of(const NodeView& node, bool largest) {
  int64_t axis = node.integer("axis", 0);
  bool keep = node.integer("keepdims", 1) != 0, last = node.integer("select_last_index", 0) != 0;
  return unary([=](const at::Tensor& x) {
    int64_t along = axis_in(axis, x.dim());
    if (x.size(along) == 0) fail("axis {} is empty", along);
    return position(x, along, keep, last, largest);
  });
}

/// x without its last element along the axis, after a number.
at::Tensor shift_in(const at::Tensor& x, int64_t axis, double first) {
  if (x.size(axis) == 0) return x;
  return at::cat({at::full_like(x.narrow(axis, 0, 1), first), x.narrow(axis, 0, x.size(axis) - 1)}, axis);
}

/// A sum or product of all elements up to each; exclusive ones begin with that of nothing.
Kernel running(const NodeView& node, bool product) {
  bool exclusive = node.integer("exclusive", 0) != 0, reverse = node.integer("reverse", 0) != 0;
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    int64_t axis = axis_in(integer_of(call.in(1), "axis"), x.dim());
    at::Tensor ordered = reverse ? at::flip(x, axis) : x;
    at::Tensor y = product ? at::cumprod(ordered, axis, x.scalar_type()) : at::cumsum(ordered, axis, x.scalar_type());
    if (exclusive) y = shift_in(y, axis, product ? 1 : 0);
    call.set(0, reverse ? at::flip(y, axis) : y);
  };
}

}  // namespace

Kernel reduce_l1(const NodeView& node) { return reduction(node, l1_over, at::abs); }
Kernel reduce_l2(const NodeView& node) { return reduction(node, l2_over, at::abs); }
Kernel reduce_log_sum(const NodeView& node) { return reduction(node, log_sum_over, at::log); }
Kernel reduce_log_sum_exp(const NodeView& node) { return reduction(node, log_sum_exp_over); }
Kernel reduce_max(const NodeView& node) { return reduction(node, max_over); }
Kernel reduce_mean(const NodeView& node) { return reduction(node, mean_over); }
Kernel reduce_min(const NodeView& node) { return reduction(node, min_over); }
Kernel reduce_prod(const NodeView& node) { return reduction(node, prod_over); }
Kernel reduce_sum(const NodeView& node) { return reduction(node, sum_over); }
Kernel reduce_sum_square(const NodeView& node) { return reduction(node, sum_square_over, at::square); }

Kernel arg_max(const NodeView& node) { return position_of(node, true); }
Kernel arg_min(const NodeView& node) { return position_of(node, false); }

/// Equal values keep the order of their indices, which LibTorch's own topk does not promise; a stable sort does.
Kernel top_k(const NodeView& node) {
  int64_t axis = node.integer("axis", -1), fixed = node.integer("k", -1);
  bool largest = node.integer("largest", 1) != 0;
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    int64_t along = axis_in(axis, x.dim()), k = call.has(1) ? integer_of(call.in(1), "k") : fixed;
    if (k < 0 || k > x.size(along)) fail("k is {}, the axis has {} elements", k, x.size(along));
    auto [values, indices] = at::sort(x, c10::optional<bool>(true), along, largest);
    call.set(0, values.narrow(along, 0, k));
    call.set(1, indices.narrow(along, 0, k));
  };
}

Kernel cum_prod(const NodeView& node) { return running(node, true); }
Kernel cum_sum(const NodeView& node) { return running(node, false); }

// clang-format off
std::span<const Op> reduce_rows() {
  static constexpr Op kRows[] = {
      {.name = "ArgMax", .prepare = arg_max, .differentiable = false},
      {.name = "ArgMin", .prepare = arg_min, .differentiable = false},
      {.name = "CumProd", .prepare = cum_prod},
      {.name = "CumSum", .prepare = cum_sum},
      {.name = "ReduceL1", .prepare = reduce_l1},
      {.name = "ReduceL2", .prepare = reduce_l2},
      {.name = "ReduceLogSum", .prepare = reduce_log_sum},
      {.name = "ReduceLogSumExp", .prepare = reduce_log_sum_exp},
      {.name = "ReduceMax", .prepare = reduce_max},
      {.name = "ReduceMean", .prepare = reduce_mean},
      {.name = "ReduceMin", .prepare = reduce_min},
      {.name = "ReduceProd", .prepare = reduce_prod},
      {.name = "ReduceSum", .prepare = reduce_sum},
      {.name = "ReduceSumSquare", .prepare = reduce_sum_square},
      {.name = "TopK", .prepare = top_k},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
