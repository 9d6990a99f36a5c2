// Pooling over windows and over all of space.
#include <limits>

#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/max_pool.h"
#include "ops/window.h"

namespace netmend::ops::families {
namespace {

at::IntArrayRef spatial(const at::Tensor& x) { return x.sizes().slice(2); }

WindowAttributes pool_attributes(const NodeView& node) {
  WindowAttributes attributes(node);
  node.require(!attributes.kernel.empty(), "kernel_shape is missing");
  return attributes;
}

Window pool_window(const WindowAttributes& attributes, const at::Tensor& x) {
  if (x.dim() < 3 || x.dim() > 5) fail("the input has {} axes, expected 3 to 5", x.dim());
  Window window = window_over(attributes, attributes.kernel, spatial(x));
  for (size_t i = 0; i < window.rank(); ++i) {
    if (window.begin[i] >= window.span(i) || window.end[i] >= window.span(i)) {
      fail("a padding is as large as the window itself");
    }
  }
  return window;
}

/// Padding at the end up to what the last position reads; negative where nothing reads the rest.
std::vector<int64_t> read_ends(const Window& window, const at::Tensor& x) {
  std::vector<int64_t> ends;
  for (size_t i = 0; i < window.rank(); ++i) ends.push_back(window.needed_end(i, x.size(i + 2)));
  return ends;
}

at::Tensor torch_max_pool(const at::Tensor& x, const Window& w) {
  at::Tensor padded = pad_spatial(x, w.begin, read_ends(w, x), -std::numeric_limits<double>::infinity());
  std::vector<int64_t> zero(w.rank(), 0);
  if (w.rank() == 1) return at::max_pool1d(padded, w.kernel, w.stride, zero, w.dilation);
  if (w.rank() == 2) return at::max_pool2d(padded, w.kernel, w.stride, zero, w.dilation);
  return at::max_pool3d(padded, w.kernel, w.stride, zero, w.dilation);
}

at::Tensor max_pool_of(const at::Tensor& x, const Window& window) {
  if (!x.is_floating_point()) return max_pool_of(x.to(at::kDouble), window).to(x.scalar_type());
  if (!suits_own_max_pool(x)) return torch_max_pool(x, window);
  return tracked(x) ? max_pool_tracked(x, window) : ops::max_pool(x, window);
}

/// Positions in a plane, counted row by row, as positions counted column by column.
at::Tensor column_major(const at::Tensor& where, at::IntArrayRef sizes) {
  at::Tensor left = where, result = at::zeros_like(where);
  int64_t stride = 1;
  for (int64_t size : sizes) stride *= size;
  for (size_t i = sizes.size(); i-- > 0;) {
    stride /= sizes[i];
    result = result + at::remainder(left, sizes[i]) * stride;
    left = at::div(left, sizes[i], "floor");
  }
  return result;
}

/// ONNX counts positions over the whole tensor.
at::Tensor max_pool_indices(const at::Tensor& x, const Window& window, bool by_column) {
  at::Tensor values = x.detach().to(at::kCPU, x.scalar_type() == at::kFloat ? at::kFloat : at::kDouble);
  at::Tensor where = max_pool_positions(values, window);
  if (by_column) where = column_major(where, spatial(x));
  int64_t planes = x.size(0) * x.size(1), plane = 1;
  for (int64_t size : spatial(x)) plane *= size;
  std::vector<int64_t> shape(x.dim(), 1);
  shape[0] = x.size(0), shape[1] = x.size(1);
  return (where + (at::arange(planes, at::kLong) * plane).reshape(shape)).to(x.device());
}

/// Sums over windows, axis by axis: any padding, dilation and rank, with a gradient.
at::Tensor window_sums(const at::Tensor& x, const Window& window) {
  at::Tensor y = pad_spatial(x, window.begin, read_ends(window, x), 0);
  for (size_t i = 0; i < window.rank(); ++i) {
    int64_t axis = i + 2, reach = (window.output[i] - 1) * window.stride[i] + 1;
    at::Tensor sum;
    for (int64_t k = 0; k < window.kernel[i]; ++k) {
      int64_t from = k * window.dilation[i];
      at::Tensor part = y.slice(axis, from, from + reach, window.stride[i]);
      sum = sum.defined() ? sum + part : part;
    }
    y = sum;
  }
  return y;
}

/// How many elements of an axis (and of its padding, when that counts) each position covers.
at::Tensor coverage(const Window& window, size_t axis, int64_t size, bool count_padding) {
  at::Tensor counts = at::empty({window.output[axis]}, at::kDouble);
  double* data = counts.data_ptr<double>();
  int64_t low = count_padding ? -window.begin[axis] : 0, high = size + (count_padding ? window.end[axis] : 0);
  int64_t step = window.dilation[axis];
  for (int64_t j = 0; j < window.output[axis]; ++j) {
    int64_t first = j * window.stride[axis] - window.begin[axis];
    int64_t from = first < low ? (low - first + step - 1) / step : 0;
    int64_t to = first < high ? std::min(window.kernel[axis], (high - first + step - 1) / step) : 0;
    data[j] = double(std::max<int64_t>(to - from, 1));
  }
  return counts;
}

at::Tensor window_means(const at::Tensor& x, const Window& window, bool count_padding) {
  at::Tensor y = window_sums(x, window);
  for (size_t i = 0; i < window.rank(); ++i) {
    std::vector<int64_t> shape(x.dim(), 1);
    shape[i + 2] = window.output[i];
    y = y / coverage(window, i, x.size(i + 2), count_padding).to(x.options()).reshape(shape);
  }
  return y;
}

/// What LibTorch's own average pool covers.
bool is_plain(const Window& w, const at::Tensor& x) {
  for (size_t i = 0; i < w.rank(); ++i) {
    bool fits = w.begin[i] == w.end[i] && 2 * w.begin[i] <= w.kernel[i] && w.dilation[i] == 1;
    if (!fits || w.needed_end(i, x.size(i + 2)) > w.end[i]) return false;
  }
  return true;
}

at::Tensor average_pool_of(const at::Tensor& x, const Window& w, bool count_padding) {
  if (!is_plain(w, x)) return window_means(x, w, count_padding);
  if (w.rank() == 1) return at::avg_pool1d(x, w.kernel, w.stride, w.begin, false, count_padding);
  if (w.rank() == 2) return at::avg_pool2d(x, w.kernel, w.stride, w.begin, false, count_padding);
  return at::avg_pool3d(x, w.kernel, w.stride, w.begin, false, count_padding);
}

std::vector<int64_t> spatial_axes(const at::Tensor& x) {
  if (x.dim() < 3) fail("the input has {} axes, expected at least 3", x.dim());
  std::vector<int64_t> axes = all_axes(x.dim());
  return {axes.begin() + 2, axes.end()};
}

double norm_order(const NodeView& node) {
  double p = double(node.integer("p", 2));
  node.require(p > 0, "p is {}", p);
  return p;
}

}  // namespace

Kernel max_pool(const NodeView& node) {
  WindowAttributes attributes = pool_attributes(node);
  bool by_column = node.integer("storage_order", 0) != 0, indices = node.has_output(1);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    Window window = pool_window(attributes, x);
    call.set(0, max_pool_of(x, window));
    if (indices) call.set(1, max_pool_indices(x, window, by_column));
  };
}

Kernel average_pool(const NodeView& node) {
  WindowAttributes attributes = pool_attributes(node);
  bool count_padding = node.integer("count_include_pad", 0) != 0;
  return unary([=](const at::Tensor& x) { return average_pool_of(x, pool_window(attributes, x), count_padding); });
}

Kernel lp_pool(const NodeView& node) {
  WindowAttributes attributes = pool_attributes(node);
  double p = norm_order(node);
  return unary([=](const at::Tensor& x) {
    return at::pow(window_sums(at::pow(at::abs(x), p), pool_window(attributes, x)), 1 / p);
  });
}

Kernel global_average_pool(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::mean(x, spatial_axes(x), true); });
}

Kernel global_max_pool(const NodeView&) {
  return unary([](const at::Tensor& x) { return at::amax(x, spatial_axes(x), true); });
}

Kernel global_lp_pool(const NodeView& node) {
  double p = norm_order(node);
  return unary([=](const at::Tensor& x) { return at::norm(x, p, spatial_axes(x), true); });
}

// clang-format off
std::span<const Op> pool_rows() {
  static constexpr Op kRows[] = {
      {.name = "AveragePool", .prepare = average_pool},
      {.name = "GlobalAveragePool", .prepare = global_average_pool},
      {.name = "GlobalLpPool", .prepare = global_lp_pool},
      {.name = "GlobalMaxPool", .prepare = global_max_pool},
      {.name = "LpPool", .prepare = lp_pool},
      {.name = "MaxPool", .prepare = max_pool},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
