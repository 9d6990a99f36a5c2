#include "ops/max_pool.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "ops/arguments.h"
#include "ops/vector_clones.h"

namespace netmend::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Range {
  int64_t from, to;
};

/// The part of a window at an output position that lies on the input, as steps of the kernel.
Range inside(const PoolShape& s, int axis, int64_t position) {
  int64_t first = position * s.stride[axis] - s.begin[axis], step = s.dilation[axis];
  int64_t from = first < 0 ? (-first + step - 1) / step : 0;
  int64_t to = first < s.in[axis] ? (s.in[axis] - first + step - 1) / step : 0;
  return {from, std::min(to, s.kernel[axis])};
}

int64_t source(const PoolShape& s, int axis, int64_t position, int64_t step) {
  return position * s.stride[axis] - s.begin[axis] + step * s.dilation[axis];
}

template <typename T>
NETMEND_INLINE T larger(T best, T value) {
  return (value > best) | (value != value) ? value : best;
}

template <typename T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

bool is_two_by_two(const PoolShape& s) {
  return s.kernel == std::array<int64_t, 3>{1, 2, 2} && s.stride[1] == 2 && s.stride[2] == 2 && s.dilation[1] == 1 &&
         s.dilation[2] == 1 && s.begin == std::array<int64_t, 3>{0, 0, 0} && 2 * s.out[1] <= s.in[1] &&
         2 * s.out[2] <= s.in[2] && s.out[0] == s.in[0] && s.stride[0] == 1;
}

template <typename T>
NETMEND_INLINE void two_by_two(const T* x, T* y, const PoolShape& s, int64_t planes) {
  int64_t width = s.in[2], out = s.out[2];
  for (int64_t p = 0; p < planes * s.in[0]; ++p) {
    for (int64_t h = 0; h < s.out[1]; ++h, y += out) {
      const T *a = x + (p * s.in[1] + 2 * h) * width, *b = a + width;
      for (int64_t j = 0; j < out; ++j) {
        y[j] = larger(larger(larger(a[2 * j], a[2 * j + 1]), b[2 * j]), b[2 * j + 1]);
      }
    }
  }
}

/// y[j] = the largest of row[j·stride + k·dilation]
template <typename T>
NETMEND_INLINE void along_row(const T* row, T* y, int64_t out, int64_t kernel, int64_t stride, int64_t dilation) {
  for (int64_t j = 0; j < out; ++j) y[j] = row[j * stride];
  for (int64_t k = 1; k < kernel; ++k) {
    const T* at = row + k * dilation;
    if (stride == 1) {
      for (int64_t j = 0; j < out; ++j) y[j] = larger(y[j], at[j]);
    } else if (stride == 2) {
      for (int64_t j = 0; j < out; ++j) y[j] = larger(y[j], at[2 * j]);
    } else {
      for (int64_t j = 0; j < out; ++j) y[j] = larger(y[j], at[j * stride]);
    }
  }
}

/// Rows first, into `row` (which has the padding around it), then along the row: two passes that vectorise.
template <typename T>
NETMEND_INLINE void by_rows(const T* x, T* y, const PoolShape& s, int64_t planes, T* row, int64_t width) {
  int64_t columns = std::max<int64_t>(0, std::min(s.in[2], width - s.begin[2]));
  for (int64_t p = 0; p < planes; ++p, x += s.in_plane()) {
    for (int64_t d = 0; d < s.out[0]; ++d) {
      for (int64_t h = 0; h < s.out[1]; ++h, y += s.out[2]) {
        for (int64_t j = 0; j < width; ++j) row[j] = kLowest<T>;
        T* middle = row + (columns ? s.begin[2] : 0);
        Range depth = inside(s, 0, d), height = inside(s, 1, h);
        for (int64_t i = depth.from; i < depth.to; ++i) {
          for (int64_t k = height.from; k < height.to; ++k) {
            const T* from = x + (source(s, 0, d, i) * s.in[1] + source(s, 1, h, k)) * s.in[2];
            for (int64_t j = 0; j < columns; ++j) middle[j] = larger(middle[j], from[j]);
          }
        }
        along_row(row, y, s.out[2], s.kernel[2], s.stride[2], s.dilation[2]);
      }
    }
  }
}

/// Channels are innermost: each window is a few vectors of them.
template <typename T>
NETMEND_INLINE void by_channels(const T* x, T* y, const PoolShape& s, int64_t images, int64_t channels) {
  for (int64_t n = 0; n < images; ++n, x += s.in_plane() * channels) {
    for (int64_t h = 0; h < s.out[1]; ++h) {
      Range rows = inside(s, 1, h);
      for (int64_t w = 0; w < s.out[2]; ++w, y += channels) {
        Range columns = inside(s, 2, w);
        for (int64_t c = 0; c < channels; ++c) y[c] = kLowest<T>;
        for (int64_t i = rows.from; i < rows.to; ++i) {
          for (int64_t j = columns.from; j < columns.to; ++j) {
            const T* from = x + (source(s, 1, h, i) * s.in[2] + source(s, 2, w, j)) * channels;
            for (int64_t c = 0; c < channels; ++c) y[c] = larger(y[c], from[c]);
          }
        }
      }
    }
  }
}

template <typename T>
NETMEND_INLINE bool is_maximum(T value, T best) {
  return (value == best) | ((value != value) & (best != best));
}

/// Hands the gradient to the first of each four; all of gx is written but the odd last row and column.
template <typename T>
NETMEND_INLINE void two_by_two_back(const T* x, const T* y, const T* g, T* gx, const PoolShape& s, int64_t planes) {
  int64_t width = s.in[2], out = s.out[2];
  for (int64_t p = 0; p < planes * s.in[0]; ++p) {
    for (int64_t h = 0; h < s.out[1]; ++h, y += out, g += out) {
      int64_t at = (p * s.in[1] + 2 * h) * width;
      const T *a = x + at, *b = a + width;
      T *ga = gx + at, *gb = ga + width;
      for (int64_t j = 0; j < out; ++j) {
        T left = g[j], none = 0, best = y[j];
        bool first = is_maximum(a[2 * j], best), second = is_maximum(a[2 * j + 1], best);
        bool third = is_maximum(b[2 * j], best);
        ga[2 * j] = first ? left : none;
        left = first ? none : left;
        ga[2 * j + 1] = second ? left : none;
        left = second ? none : left;
        gb[2 * j] = third ? left : none;
        gb[2 * j + 1] = third ? none : left;
      }
    }
  }
}

template <typename T>
NETMEND_INLINE void by_channels_back(const T* x, const T* y, const T* g, T* gx, const PoolShape& s, int64_t images,
                                     int64_t channels, T* left) {
  int64_t image = s.in_plane() * channels;
  for (int64_t n = 0; n < images; ++n, x += image, gx += image) {
    for (int64_t h = 0; h < s.out[1]; ++h) {
      Range rows = inside(s, 1, h);
      for (int64_t w = 0; w < s.out[2]; ++w, y += channels, g += channels) {
        Range columns = inside(s, 2, w);
        for (int64_t c = 0; c < channels; ++c) left[c] = g[c];
        for (int64_t i = rows.from; i < rows.to; ++i) {
          for (int64_t j = columns.from; j < columns.to; ++j) {
            int64_t at = (source(s, 1, h, i) * s.in[2] + source(s, 2, w, j)) * channels;
            for (int64_t c = 0; c < channels; ++c) {
              bool hit = is_maximum(x[at + c], y[c]);
              gx[at + c] += hit ? left[c] : T(0);
              left[c] = hit ? T(0) : left[c];
            }
          }
        }
      }
    }
  }
}

NETMEND_VECTOR_CLONES void two_by_two_float(const float* x, float* y, const PoolShape& s, int64_t planes) {
  two_by_two(x, y, s, planes);
}
NETMEND_VECTOR_CLONES void two_by_two_double(const double* x, double* y, const PoolShape& s, int64_t planes) {
  two_by_two(x, y, s, planes);
}
NETMEND_VECTOR_CLONES void by_rows_float(const float* x, float* y, const PoolShape& s, int64_t planes, float* row,
                                         int64_t width) {
  by_rows(x, y, s, planes, row, width);
}
NETMEND_VECTOR_CLONES void by_rows_double(const double* x, double* y, const PoolShape& s, int64_t planes, double* row,
                                          int64_t width) {
  by_rows(x, y, s, planes, row, width);
}
NETMEND_VECTOR_CLONES void by_channels_float(const float* x, float* y, const PoolShape& s, int64_t images,
                                             int64_t channels) {
  by_channels(x, y, s, images, channels);
}
NETMEND_VECTOR_CLONES void by_channels_double(const double* x, double* y, const PoolShape& s, int64_t images,
                                              int64_t channels) {
  by_channels(x, y, s, images, channels);
}
NETMEND_VECTOR_CLONES void two_by_two_back_float(const float* x, const float* y, const float* g, float* gx,
                                                 const PoolShape& s, int64_t planes) {
  two_by_two_back(x, y, g, gx, s, planes);
}
NETMEND_VECTOR_CLONES void two_by_two_back_double(const double* x, const double* y, const double* g, double* gx,
                                                  const PoolShape& s, int64_t planes) {
  two_by_two_back(x, y, g, gx, s, planes);
}
NETMEND_VECTOR_CLONES void by_channels_back_float(const float* x, const float* y, const float* g, float* gx,
                                                  const PoolShape& s, int64_t images, int64_t channels, float* left) {
  by_channels_back(x, y, g, gx, s, images, channels, left);
}
NETMEND_VECTOR_CLONES void by_channels_back_double(const double* x, const double* y, const double* g, double* gx,
                                                   const PoolShape& s, int64_t images, int64_t channels, double* left) {
  by_channels_back(x, y, g, gx, s, images, channels, left);
}

template <typename T>
struct Loops;
template <>
struct Loops<float> {
  static constexpr auto two_by_two = two_by_two_float;
  static constexpr auto by_rows = by_rows_float;
  static constexpr auto by_channels = by_channels_float;
  static constexpr auto two_by_two_back = two_by_two_back_float;
  static constexpr auto by_channels_back = by_channels_back_float;
};
template <>
struct Loops<double> {
  static constexpr auto two_by_two = two_by_two_double;
  static constexpr auto by_rows = by_rows_double;
  static constexpr auto by_channels = by_channels_double;
  static constexpr auto two_by_two_back = two_by_two_back_double;
  static constexpr auto by_channels_back = by_channels_back_double;
};

bool channels_last(const at::Tensor& x) {
  return x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast) && !x.is_contiguous();
}

at::MemoryFormat format_of(const at::Tensor& x) {
  return channels_last(x) ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

at::Tensor empty_result(const at::Tensor& x, const Window& window, at::TensorOptions options, at::MemoryFormat format) {
  std::vector<int64_t> shape = {x.size(0), x.size(1)};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  return at::empty(shape, options, format);
}

template <typename T>
void forward(const at::Tensor& x, const at::Tensor& y, const PoolShape& s) {
  const T* from = x.data_ptr<T>();
  T* to = y.data_ptr<T>();
  int64_t planes = x.size(0) * x.size(1);
  if (channels_last(x)) return Loops<T>::by_channels(from, to, s, x.size(0), x.size(1));
  if (is_two_by_two(s)) return Loops<T>::two_by_two(from, to, s, planes);
  int64_t width = (s.out[2] - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
  at::Tensor row = at::empty({width}, x.options());
  Loops<T>::by_rows(from, to, s, planes, row.data_ptr<T>(), width);
}

/// Position of the first maximum of a window; `plane` holds the input's spatial sizes.
template <typename T>
int64_t first_maximum(const T* plane, const PoolShape& s, int64_t d, int64_t h, int64_t w) {
  Range depth = inside(s, 0, d), rows = inside(s, 1, h), columns = inside(s, 2, w);
  int64_t best = -1;
  for (int64_t i = depth.from; i < depth.to; ++i) {
    for (int64_t j = rows.from; j < rows.to; ++j) {
      for (int64_t k = columns.from; k < columns.to; ++k) {
        int64_t at = (source(s, 0, d, i) * s.in[1] + source(s, 1, h, j)) * s.in[2] + source(s, 2, w, k);
        bool better = best < 0 || plane[at] > plane[best] || (plane[at] != plane[at] && plane[best] == plane[best]);
        if (better) best = at;
      }
    }
  }
  return best;
}

/// Calls `f(plane number, output position, position of the maximum)` for every window of a contiguous tensor.
template <typename T, typename F>
void each_maximum(const at::Tensor& x, const PoolShape& s, F f) {
  const T* plane = x.data_ptr<T>();
  for (int64_t p = 0; p < x.size(0) * x.size(1); ++p, plane += s.in_plane()) {
    int64_t at = 0;
    for (int64_t d = 0; d < s.out[0]; ++d) {
      for (int64_t h = 0; h < s.out[1]; ++h) {
        for (int64_t w = 0; w < s.out[2]; ++w, ++at) f(p, at, first_maximum(plane, s, d, h, w));
      }
    }
  }
}

template <typename T>
void backward(const at::Tensor& x, const at::Tensor& y, const at::Tensor& g, const at::Tensor& gx, const PoolShape& s) {
  const T *from = x.data_ptr<T>(), *best = y.data_ptr<T>(), *gradient = g.data_ptr<T>();
  T* to = gx.data_ptr<T>();
  if (channels_last(x)) {
    at::Tensor left = at::empty({x.size(1)}, x.options());
    return Loops<T>::by_channels_back(from, best, gradient, to, s, x.size(0), x.size(1), left.data_ptr<T>());
  }
  if (is_two_by_two(s)) return Loops<T>::two_by_two_back(from, best, gradient, to, s, x.size(0) * x.size(1));
  each_maximum<T>(x, s, [&](int64_t p, int64_t at, int64_t where) {
    if (where >= 0) to[p * s.in_plane() + where] += gradient[p * s.out_plane() + at];
  });
}

/// The gradient as LibTorch operators, for gradients of gradients.
at::Tensor backward_tracked(const at::Tensor& x, const at::Tensor& g, const Window& window) {
  at::Tensor where = max_pool_positions(x, window).flatten(2);
  at::Tensor kept = at::where(where >= 0, g.flatten(2), at::zeros({}, g.options()));
  int64_t plane = PoolShape(window, x.sizes().slice(2)).in_plane();
  at::Tensor flat = at::zeros({x.size(0), x.size(1), plane}, g.options());
  return flat.scatter_add(2, where.clamp_min(0), kept).reshape(x.sizes());
}

Window unpack(const std::vector<int64_t>& numbers) {
  size_t rank = numbers.size() / 6;
  auto part = [&](size_t i) {
    return std::vector<int64_t>(numbers.begin() + i * rank, numbers.begin() + (i + 1) * rank);
  };
  return {part(0), part(1), part(2), part(3), part(4), part(5)};
}

std::vector<int64_t> pack(const Window& window) {
  std::vector<int64_t> numbers;
  for (const auto* part :
       {&window.kernel, &window.stride, &window.dilation, &window.begin, &window.end, &window.output}) {
    numbers.insert(numbers.end(), part->begin(), part->end());
  }
  return numbers;
}

struct MaxPool : torch::autograd::Function<MaxPool> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, std::vector<int64_t> numbers) {
    at::Tensor x = input.contiguous(format_of(input)), y = max_pool(x, unpack(numbers));
    context->save_for_backward({x, y});
    context->saved_data["window"] = numbers;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &y = saved[1];
    Window window = unpack(context->saved_data["window"].toIntVector());
    if (at::GradMode::is_enabled()) return {backward_tracked(x, gradients[0], window), at::Tensor()};
    at::Tensor g = gradients[0].contiguous(format_of(x)), gx = at::zeros_like(x);
    if (x.numel() == 0) return {gx, at::Tensor()};
    PoolShape shape(window, x.sizes().slice(2));
    if (x.scalar_type() == at::kFloat) ops::backward<float>(x, y, g, gx, shape);
    if (x.scalar_type() == at::kDouble) ops::backward<double>(x, y, g, gx, shape);
    return {gx, at::Tensor()};
  }
};

}  // namespace

PoolShape::PoolShape(const Window& window, at::IntArrayRef spatial) {
  auto last = [](at::IntArrayRef list, int64_t missing) {
    std::array<int64_t, 3> result{missing, missing, missing};
    std::copy(list.begin(), list.end(), result.end() - list.size());
    return result;
  };
  in = last(spatial, 1), out = last(window.output, 1), kernel = last(window.kernel, 1);
  stride = last(window.stride, 1), dilation = last(window.dilation, 1), begin = last(window.begin, 0);
}

bool suits_own_max_pool(const at::Tensor& x) {
  bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  return known && x.device().is_cpu() && x.layout() == at::kStrided && x.dim() >= 3 && x.dim() <= 5;
}

at::Tensor max_pool(const at::Tensor& input, const Window& window) {
  at::Tensor x = input.contiguous(format_of(input));
  PoolShape shape(window, x.sizes().slice(2));
  at::Tensor y = empty_result(x, window, x.options(), format_of(x));
  if (x.numel() == 0) return y;
  if (x.scalar_type() == at::kFloat) forward<float>(x, y, shape);
  if (x.scalar_type() == at::kDouble) forward<double>(x, y, shape);
  return y;
}

at::Tensor max_pool_tracked(const at::Tensor& x, const Window& window) { return MaxPool::apply(x, pack(window)); }

at::Tensor max_pool_positions(const at::Tensor& input, const Window& window) {
  at::Tensor x = input.detach().contiguous();
  PoolShape shape(window, x.sizes().slice(2));
  at::Tensor result = empty_result(x, window, x.options().dtype(at::kLong), at::MemoryFormat::Contiguous);
  int64_t* data = result.data_ptr<int64_t>();
  auto keep = [&](int64_t p, int64_t at, int64_t where) { data[p * shape.out_plane() + at] = where; };
  if (x.scalar_type() == at::kFloat) each_maximum<float>(x, shape, keep);
  if (x.scalar_type() == at::kDouble) each_maximum<double>(x, shape, keep);
  return result;
}

}  // namespace netmend::ops
