#include "ops/max_pool.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

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

/// Calls `f(start, length)` over 0 … count−1 in blocks of a fixed length, which compile to whole vectors; the last
/// block overlaps the one before it, so f must not mind doing an element twice.
template <typename F>
NETMEND_INLINE void in_blocks(int64_t count, F f) {
  constexpr int64_t block = 8;
  if (count < block) {
    for (int64_t j = 0; j < count; ++j) f(j, std::integral_constant<int64_t, 1>());
    return;
  }
  for (int64_t j = 0; j < count; j += block) f(std::min(j, count - block), std::integral_constant<int64_t, block>());
}

template <typename T>
NETMEND_INLINE void two_by_two(const T* x, T* __restrict y, const PoolShape& s, int64_t planes) {
  int64_t width = s.in[2], out = s.out[2];
  for (int64_t p = 0; p < planes * s.in[0]; ++p) {
    for (int64_t h = 0; h < s.out[1]; ++h, y += out) {
      const T *a = x + (p * s.in[1] + 2 * h) * width, *b = a + width;
      in_blocks(out, [&](int64_t start, auto length) NETMEND_INLINE_LAMBDA {
        const T *top = a + 2 * start, *low = b + 2 * start;
        for (int64_t j = 0; j < length; ++j) {
          y[start + j] = larger(larger(larger(top[2 * j], top[2 * j + 1]), low[2 * j]), low[2 * j + 1]);
        }
      });
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

/// Eight elements as the compiler's own vector type: it maps to whatever registers the machine has.
template <typename T>
struct Eight {
  typedef T Vector __attribute__((vector_size(8 * sizeof(T))));
  static NETMEND_INLINE void load(const T* from, Vector& v) { std::memcpy(&v, from, sizeof v); }
  static NETMEND_INLINE void store(T* to, const Vector& v) { std::memcpy(to, &v, sizeof v); }
};

/// Hands the gradients g of eight windows to the first maximum of each; a and b are the two rows they lie on.
template <typename T>
NETMEND_INLINE void eight_windows_back(const T* a, const T* b, const T* y, const T* g, T* ga, T* gb) {
  using E = Eight<T>;
  using Vector = typename E::Vector;
  Vector best, left, none = {};
  E::load(y, best);
  E::load(g, left);
  auto take = [&](const Vector& value, Vector& taken) NETMEND_INLINE_LAMBDA {
    auto hit = (value == best) | ((value != value) & (best != best));
    taken = hit ? left : none;
    left = hit ? none : left;
  };
  auto both = [&](const T* row, T* to, bool last) NETMEND_INLINE_LAMBDA {
    Vector low, high, even, odd;
    E::load(row, low);
    E::load(row + 8, high);
    take(__builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14), even);
    if (last) odd = left;
    if (!last) take(__builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15), odd);
    E::store(to, __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11));
    E::store(to + 8, __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15));
  };
  both(a, ga, false);
  both(b, gb, true);
}

template <typename T>
NETMEND_INLINE void window_back(const T* a, const T* b, T best, T left, T* ga, T* gb) {
  T* to = is_maximum(a[0], best) ? ga : is_maximum(a[1], best) ? ga + 1 : is_maximum(b[0], best) ? gb : gb + 1;
  ga[0] = ga[1] = gb[0] = gb[1] = 0;
  *to = left;
}

/// All of gx is written but the odd last row and column. Rows are done in eights, the last eight overlapping those
/// before.
template <typename T>
NETMEND_INLINE void two_by_two_back(const T* x, const T* y, const T* g, T* gx, const PoolShape& s, int64_t planes) {
  int64_t width = s.in[2], out = s.out[2];
  for (int64_t p = 0; p < planes * s.in[0]; ++p) {
    for (int64_t h = 0; h < s.out[1]; ++h, y += out, g += out) {
      int64_t at = (p * s.in[1] + 2 * h) * width;
      const T *a = x + at, *b = a + width;
      T *ga = gx + at, *gb = ga + width;
      for (int64_t j = 0; out >= 8 && j < out; j += 8) {
        int64_t k = std::min(j, out - 8);
        eight_windows_back(a + 2 * k, b + 2 * k, y + k, g + k, ga + 2 * k, gb + 2 * k);
      }
      for (int64_t j = 0; out < 8 && j < out; ++j)
        window_back(a + 2 * j, b + 2 * j, y[j], g[j], ga + 2 * j, gb + 2 * j);
    }
  }
}

/// One step of a window along a row of outputs: elements that are the maximum take what is left of the gradient.
template <typename T>
NETMEND_INLINE void take_gradient(const T* x, const T* y, T* __restrict gx, T* __restrict left, int64_t count,
                                  int64_t stride) {
  for (int64_t j = 0; j < count; ++j) {
    bool hit = is_maximum(x[j * stride], y[j]);
    gx[j * stride] += hit ? left[j] : T(0);
    left[j] = hit ? T(0) : left[j];
  }
}

template <typename T>
NETMEND_INLINE void row_back(const T* x, const T* y, T* gx, T* left, const PoolShape& s) {
  int64_t stride = s.stride[2];
  for (int64_t k = 0; k < s.kernel[2]; ++k) {
    int64_t offset = k * s.dilation[2] - s.begin[2];
    int64_t from = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t to = offset < s.in[2] ? std::min(s.out[2], (s.in[2] - offset + stride - 1) / stride) : 0;
    int64_t at = offset + from * stride, count = to - from;
    if (count <= 0) continue;
    if (stride == 1) take_gradient(x + at, y + from, gx + at, left + from, count, 1);
    if (stride == 2) take_gradient(x + at, y + from, gx + at, left + from, count, 2);
    if (stride > 2) take_gradient(x + at, y + from, gx + at, left + from, count, stride);
  }
}

template <typename T>
NETMEND_INLINE void by_rows_back(const T* x, const T* y, const T* g, T* gx, const PoolShape& s, int64_t planes,
                                 T* left) {
  for (int64_t p = 0; p < planes; ++p, x += s.in_plane(), gx += s.in_plane()) {
    for (int64_t d = 0; d < s.out[0]; ++d) {
      for (int64_t h = 0; h < s.out[1]; ++h, y += s.out[2], g += s.out[2]) {
        std::copy(g, g + s.out[2], left);
        Range depth = inside(s, 0, d), height = inside(s, 1, h);
        for (int64_t i = depth.from; i < depth.to; ++i) {
          for (int64_t k = height.from; k < height.to; ++k) {
            int64_t row = (source(s, 0, d, i) * s.in[1] + source(s, 1, h, k)) * s.in[2];
            row_back(x + row, y, gx + row, left, s);
          }
        }
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
NETMEND_VECTOR_CLONES void by_rows_back_float(const float* x, const float* y, const float* g, float* gx,
                                              const PoolShape& s, int64_t planes, float* left) {
  by_rows_back(x, y, g, gx, s, planes, left);
}
NETMEND_VECTOR_CLONES void by_rows_back_double(const double* x, const double* y, const double* g, double* gx,
                                               const PoolShape& s, int64_t planes, double* left) {
  by_rows_back(x, y, g, gx, s, planes, left);
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
  static constexpr auto by_rows_back = by_rows_back_float;
  static constexpr auto by_channels_back = by_channels_back_float;
};
template <>
struct Loops<double> {
  static constexpr auto two_by_two = two_by_two_double;
  static constexpr auto by_rows = by_rows_double;
  static constexpr auto by_channels = by_channels_double;
  static constexpr auto two_by_two_back = two_by_two_back_double;
  static constexpr auto by_rows_back = by_rows_back_double;
  static constexpr auto by_channels_back = by_channels_back_double;
};

/// With fewer channels a vector would be mostly empty: planes are then copied and pooled row by row.
constexpr int64_t kFewestChannels = 8;

bool channels_last(const at::Tensor& x) {
  return x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast) && !x.is_contiguous();
}

bool has_few_channels(const at::Tensor& x) { return channels_last(x) && x.size(1) < kFewestChannels; }

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
  int64_t planes = x.size(0) * x.size(1);
  if (is_two_by_two(s)) return Loops<T>::two_by_two_back(from, best, gradient, to, s, planes);
  at::Tensor left = at::empty({s.out[2]}, x.options());
  Loops<T>::by_rows_back(from, best, gradient, to, s, planes, left.data_ptr<T>());
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
    at::Tensor x = input.contiguous(has_few_channels(input) ? at::MemoryFormat::Contiguous : format_of(input));
    at::Tensor y = max_pool(x, unpack(numbers));
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
  if (has_few_channels(input)) return max_pool(input.contiguous(), window).contiguous(at::MemoryFormat::ChannelsLast);
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
