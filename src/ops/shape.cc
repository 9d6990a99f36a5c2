// Operators that look at a tensor differently, tell its shape, or make one of a given shape.
#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <cmath>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

/// The sizes Reshape asks for: 0 keeps the input's size (unless `allow_zero`), one −1 takes what is left.
std::vector<int64_t> reshaped(const at::Tensor& x, std::vector<int64_t> shape, bool allow_zero) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (int64_t(i) >= x.dim()) fail("size 0 at axis {} refers to an axis that the input does not have", i);
      shape[i] = x.size(i);
    }
    if (shape[i] < -1 || (shape[i] == -1 && open >= 0)) fail("shape has a size below -1 or more than one -1");
    if (shape[i] == -1) open = i;
    if (shape[i] >= 0) known = times(known, shape[i]);
  }
  if (open < 0) return shape;
  if (known == 0 || x.numel() % known != 0) fail("{} elements cannot fill the size -1", x.numel());
  shape[open] = x.numel() / known;
  return shape;
}

std::vector<int64_t> inserted(const at::Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<int64_t> front = axes_in(axes, x.dim() + int64_t(axes.size())), shape;
  int64_t next = 0;
  for (int64_t i = 0; i < x.dim() + int64_t(axes.size()); ++i) {
    bool is_new = std::find(front.begin(), front.end(), i) != front.end();
    shape.push_back(is_new ? 1 : x.size(next++));
  }
  return shape;
}

std::vector<int64_t> squeezed(const at::Tensor& x, const std::optional<std::vector<int64_t>>& axes) {
  std::vector<int64_t> drop = axes_in(axes.value_or(std::vector<int64_t>{}), x.dim()), shape;
  for (int64_t i = 0; i < x.dim(); ++i) {
    bool named = std::find(drop.begin(), drop.end(), i) != drop.end();
    if (named && x.size(i) != 1) fail("axis {} has size {}, only axes of size 1 can be squeezed", i, x.size(i));
    bool goes = axes ? named : x.size(i) == 1;
    if (!goes) shape.push_back(x.size(i));
  }
  return shape;
}

int64_t product(at::IntArrayRef sizes, int64_t from, int64_t to) {
  int64_t result = 1;
  for (int64_t i = from; i < to; ++i) result = times(result, sizes[i]);
  return result;
}

at::Tensor shape_tensor(const at::Tensor& x, int64_t start, int64_t end) {
  auto clamp = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + x.dim() : axis, 0, x.dim()); };
  int64_t from = clamp(start), to = std::max(from, clamp(end));
  return at::tensor(x.sizes().slice(from, to - from), at::kLong).to(x.device());
}

/// Sizes as a file gives them: not negative.
std::vector<int64_t> sizes_of(const at::Tensor& tensor) {
  std::vector<int64_t> sizes = integers_of(tensor, "shape");
  if (model::checked_count(sizes) < 0) fail("shape has a negative size, or too many elements");
  return sizes;
}

/// Steps from start to limit (without it); a hostile delta must not make it loop or overflow.
double range_count(double start, double limit, double delta) {
  if (delta == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta)) {
    fail("start, limit and delta must be finite and delta not 0");
  }
  double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (count > 1e12) fail("would have {} elements", count);
  return count;
}

int64_t range_count(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) fail("delta is 0");
  __int128 span = __int128(limit) - start, step = delta;
  if ((span > 0) != (step > 0) || span == 0) return 0;
  __int128 count = (span + step + (step > 0 ? -1 : 1)) / step;
  if (count > int64_t(1e12)) fail("would have too many elements");
  return int64_t(count);
}

model::Narrowing narrowing(const NodeView& node) {
  std::string name = node.text("round_mode", "up");
  node.require(name == "up" || name == "down" || name == "nearest", "round_mode is {}, expected up, down or nearest",
               name);
  auto rounding = name == "up"     ? model::Narrowing::kUp
                  : name == "down" ? model::Narrowing::kDown
                                   : model::Narrowing::kNearest;
  return {rounding, node.integer("saturate", 1) != 0};
}

}  // namespace

Kernel identity(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::alias(x); });
}

Kernel reshape(const NodeView& node) {
  ListArgument shape(node, "shape", 1);
  bool allow_zero = node.integer("allowzero", 0) != 0;
  return [=](Call& call) {
    auto sizes = shape.in(call);
    if (!sizes) fail("shape is missing");
    call.set(0, at::alias(call.in(0).reshape(reshaped(call.in(0), *sizes, allow_zero))));
  };
}

Kernel flatten(const NodeView& node) {
  int64_t axis = node.integer("axis", 1);
  return unary([=](const at::Tensor& x) {
    int64_t cut = axis == x.dim() ? axis : axis_in(axis, std::max<int64_t>(x.dim(), 1));
    int64_t rows = product(x.sizes(), 0, std::min(cut, x.dim())), columns = product(x.sizes(), cut, x.dim());
    return at::alias(x.reshape({rows, columns}));
  });
}

Kernel squeeze(const NodeView& node) {
  ListArgument axes(node, "axes", 1);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    call.set(0, at::alias(x.reshape(squeezed(x, axes.in(call)))));
  };
}

Kernel unsqueeze(const NodeView& node) {
  ListArgument axes(node, "axes", 1);
  return [=](Call& call) {
    auto where = axes.in(call);
    if (!where) fail("axes are missing");
    call.set(0, at::alias(call.in(0).reshape(inserted(call.in(0), *where))));
  };
}

Kernel transpose(const NodeView& node) {
  std::optional<std::vector<int64_t>> order;
  if (node.has("perm")) order = node.integers("perm");
  return unary([=](const at::Tensor& x) {
    std::vector<int64_t> axes = order ? axes_in(*order, x.dim()) : all_axes(x.dim());
    if (int64_t(axes.size()) != x.dim()) fail("perm has {} axes, the input has {}", axes.size(), x.dim());
    if (!order) std::reverse(axes.begin(), axes.end());
    return x.permute(axes);
  });
}

Kernel expand(const NodeView&) {
  return [](Call& call) {
    const at::Tensor& x = call.in(0);
    call.set(0, x.expand(at::infer_size(x.sizes(), sizes_of(call.in(1)))));
  };
}

Kernel tile(const NodeView&) {
  return [](Call& call) {
    const at::Tensor& x = call.in(0);
    std::vector<int64_t> repeats = sizes_of(call.in(1)), shape;
    if (int64_t(repeats.size()) != x.dim())
      fail("repeats has {} sizes, the input has {} axes", repeats.size(), x.dim());
    for (int64_t i = 0; i < x.dim(); ++i) shape.push_back(times(x.size(i), repeats[i]));
    if (model::checked_count(shape) < 0) fail("the result has too many elements");
    call.set(0, x.repeat(repeats));
  };
}

Kernel shape(const NodeView& node) {
  int64_t start = node.integer("start", 0), end = node.integer("end", std::numeric_limits<int64_t>::max());
  return unary([=](const at::Tensor& x) { return shape_tensor(x, start, end); });
}

Kernel size(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::scalar_tensor(x.numel(), x.options().dtype(at::kLong)); });
}

Kernel constant(const NodeView& node) {
  for (const char* other : {"value_string", "value_strings", "sparse_value"}) {
    node.require(!node.has(other), "{} is not supported", other);
  }
  at::Tensor value = node.tensor("value");
  bool real = value.defined() ? value.scalar_type() == at::kFloat : node.has("value_float") || node.has("value_floats");
  if (node.has("value_float")) value = at::scalar_tensor(node.real("value_float", 0), at::kDouble);
  if (node.has("value_floats")) value = at::tensor(node.reals("value_floats"), at::kDouble);
  if (node.has("value_int")) value = at::scalar_tensor(node.integer("value_int", 0), at::kLong);
  if (node.has("value_ints")) value = at::tensor(node.integers("value_ints"), at::kLong);
  node.require(value.defined(), "has no value");
  return [=](Call& call) { call.set(0, at::alias(real ? value.to(call.real()) : value)); };
}

Kernel constant_of_shape(const NodeView& node) {
  at::Tensor value = node.tensor("value");
  node.require(!value.defined() || value.numel() == 1, "value must have one element");
  bool real = !value.defined() || value.scalar_type() == at::kFloat;
  at::Scalar fill = value.defined() ? value.item() : at::Scalar(0.0);
  at::ScalarType type = value.defined() ? value.scalar_type() : at::kFloat;
  return [=](Call& call) {
    auto options = call.in(0).options().dtype(real ? call.real() : type);
    call.set(0, at::full(sizes_of(call.in(0)), fill, options));
  };
}

/// With half precision the file may ask for sums in float32 (`stash_type`): that is what the engine does anyway.
Kernel range(const NodeView&) {
  return [](Call& call) {
    const at::Tensor& start = call.in(0);
    if (start.is_floating_point()) {
      double from = real_of(start, "start"), step = real_of(call.in(2), "delta");
      double count = range_count(from, real_of(call.in(1), "limit"), step);
      call.set(0,
               (at::arange(int64_t(count), start.options().dtype(at::kDouble)) * step + from).to(start.scalar_type()));
    } else {
      int64_t from = integer_of(start, "start"), step = integer_of(call.in(2), "delta");
      int64_t count = range_count(from, integer_of(call.in(1), "limit"), step);
      call.set(0, (at::arange(count, start.options().dtype(at::kLong)) * step + from).to(start.scalar_type()));
    }
  };
}

Kernel eye_like(const NodeView& node) {
  int64_t k = node.integer("k", 0);
  auto type = model::Element(node.integer("dtype", 0));
  node.require(type == model::Element::kUndefined || model::supported(type), "dtype is {}", model::element_name(type));
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    if (x.dim() != 2) fail("the input has {} axes, expected 2", x.dim());
    auto options = x.options().dtype(type == model::Element::kUndefined ? x.scalar_type() : run_type(call, type));
    auto index = [&](int64_t n) { return at::arange(n, x.options().dtype(at::kLong)); };
    int64_t offset = std::clamp(k, -x.size(0) - 1, x.size(1) + 1);  // further away changes nothing
    call.set(0, (index(x.size(0)).unsqueeze(1) + offset == index(x.size(1))).to(options.dtype()));
  };
}

Kernel cast(const NodeView& node) {
  auto type = model::Element(node.integer("to", 0));
  if (!model::supported(type))
    throw Unsupported(fmt::format("{} {}: casts to {}, which is not supported", node.node().op, node.node().name,
                                  model::element_name(type)));
  model::Narrowing how = narrowing(node);
  return [=](Call& call) { call.set(0, at::alias(cast_to(call, call.in(0), type, how))); };
}

Kernel cast_like(const NodeView& node) {
  model::Element declared = node.declared_type(1);
  model::Narrowing how = narrowing(node);
  return [=](Call& call) {
    bool known = model::supported(declared);
    call.set(0, at::alias(known ? cast_to(call, call.in(0), declared, how) : call.in(0).to(call.in(1).scalar_type())));
  };
}

// clang-format off
std::span<const Op> shape_rows() {
  static constexpr Op kRows[] = {
      {.name = "Cast", .prepare = cast},
      {.name = "CastLike", .prepare = cast_like},
      {.name = "Constant", .prepare = constant, .differentiable = false},
      {.name = "ConstantOfShape", .prepare = constant_of_shape, .differentiable = false},
      {.name = "Expand", .prepare = expand},
      {.name = "EyeLike", .prepare = eye_like, .differentiable = false},
      {.name = "Flatten", .prepare = flatten},
      {.name = "Identity", .prepare = identity},
      {.name = "Range", .prepare = range, .differentiable = false},
      {.name = "Reshape", .prepare = reshape},
      {.name = "Shape", .prepare = shape, .differentiable = false},
      {.name = "Size", .prepare = size, .differentiable = false},
      {.name = "Squeeze", .prepare = squeeze},
      {.name = "Tile", .prepare = tile},
      {.name = "Transpose", .prepare = transpose, .kind = Kind::kReorder},
      {.name = "Unsqueeze", .prepare = unsqueeze},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
