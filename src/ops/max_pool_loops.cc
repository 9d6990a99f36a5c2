#include "ops/max_pool_loops.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/vector_clones.h"

namespace netmend::ops {
namespace {

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

/// The same for planes of even width: pairs of rows first, into `half`, then neighbours. Chunks of a fixed size
/// vectorise whatever the width; one may run over the end of its row, into what the next row overwrites, but not over
/// the end of all rows.
template <typename T>
NETMEND_INLINE void two_by_two_even(const T* __restrict x, T* __restrict y, const PoolShape& s, int64_t planes,
                                    T* __restrict half) {
  int64_t width = s.in[2], rows = s.out[1], pairs = rows * s.out[2];
  planes *= s.in[0];
  const T* const end_of_all = x + planes * s.in[1] * width;
  for (int64_t p = 0; p < planes; ++p, y += pairs) {
    for (int64_t h = 0; h < rows; ++h) {
      const T *a = x + (p * s.in[1] + 2 * h) * width, *b = a + width;
      T* to = half + h * width;
      const bool last = end_of_all - (b + width) < kPoolChunk;  // of narrow planes also the rows before the last
      int64_t j = 0;
      for (int64_t end = last ? width - kPoolChunk : width - 1; j <= end; j += kPoolChunk) {
        for (int i = 0; i < kPoolChunk; ++i) to[j + i] = larger(a[j + i], b[j + i]);
      }
      for (; j < width; ++j) to[j] = larger(a[j], b[j]);
    }
    for (int64_t k = 0; k < pairs; ++k) y[k] = larger(half[2 * k], half[2 * k + 1]);
  }
}

/// Channels innermost: the four neighbours of a channel lie in four runs.
template <typename T>
NETMEND_INLINE void two_by_two_channels(const T* __restrict x, T* __restrict y, const PoolShape& s, int64_t images,
                                        int64_t channels) {
  int64_t row = s.in[2] * channels;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t h = 0; h < s.out[1]; ++h) {
      const T* a = x + (n * s.in[1] + 2 * h) * row;
      for (int64_t w = 0; w < s.out[2]; ++w, a += 2 * channels, y += channels) {
        const T *b = a + channels, *c = a + row, *d = b + row;
        for (int64_t i = 0; i < channels; ++i) y[i] = larger(larger(larger(a[i], b[i]), c[i]), d[i]);
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
NETMEND_INLINE void by_rows(const T* x, T* y, const PoolShape& s, int64_t planes, T* row) {
  int64_t width = s.row_width();
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

template <typename T>
NETMEND_INLINE void all_positions(const T* plane, int64_t* result, const PoolShape& s, int64_t planes) {
  for (int64_t p = 0; p < planes; ++p, plane += s.in_plane()) {
    for (int64_t d = 0; d < s.out[0]; ++d) {
      for (int64_t h = 0; h < s.out[1]; ++h) {
        for (int64_t w = 0; w < s.out[2]; ++w) *result++ = first_maximum(plane, s, d, h, w);
      }
    }
  }
}

}  // namespace

bool PoolShape::is_two_by_two() const {
  bool two = kernel == std::array<int64_t, 3>{1, 2, 2} && stride == std::array<int64_t, 3>{1, 2, 2} &&
             dilation[1] == 1 && dilation[2] == 1 && begin == std::array<int64_t, 3>{0, 0, 0};
  return two && 2 * out[1] <= in[1] && 2 * out[2] <= in[2] && out[0] == in[0];
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::by_rows(const float* x, float* y, const PoolShape& s, int64_t planes,
                                                     float* row) {
  ops::by_rows(x, y, s, planes, row);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::by_rows(const double* x, double* y, const PoolShape& s, int64_t planes,
                                                      double* row) {
  ops::by_rows(x, y, s, planes, row);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::by_rows_back(const float* x, const float* y, const float* g, float* gx,
                                                          const PoolShape& s, int64_t planes, float* left) {
  ops::by_rows_back(x, y, g, gx, s, planes, left);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::by_rows_back(const double* x, const double* y, const double* g,
                                                           double* gx, const PoolShape& s, int64_t planes,
                                                           double* left) {
  ops::by_rows_back(x, y, g, gx, s, planes, left);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::by_channels(const float* x, float* y, const PoolShape& s, int64_t images,
                                                         int64_t channels) {
  ops::by_channels(x, y, s, images, channels);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::by_channels(const double* x, double* y, const PoolShape& s,
                                                          int64_t images, int64_t channels) {
  ops::by_channels(x, y, s, images, channels);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::by_channels_back(const float* x, const float* y, const float* g, float* gx,
                                                              const PoolShape& s, int64_t images, int64_t channels,
                                                              float* left) {
  ops::by_channels_back(x, y, g, gx, s, images, channels, left);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::by_channels_back(const double* x, const double* y, const double* g,
                                                               double* gx, const PoolShape& s, int64_t images,
                                                               int64_t channels, double* left) {
  ops::by_channels_back(x, y, g, gx, s, images, channels, left);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::two_by_two_even(const float* x, float* y, const PoolShape& s,
                                                             int64_t planes, float* half) {
  ops::two_by_two_even(x, y, s, planes, half);
}
template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::two_by_two_channels(const float* x, float* y, const PoolShape& s,
                                                                 int64_t images, int64_t channels) {
  ops::two_by_two_channels(x, y, s, images, channels);
}
template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::two_by_two_even(const double* x, double* y, const PoolShape& s,
                                                              int64_t planes, double* half) {
  ops::two_by_two_even(x, y, s, planes, half);
}
template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::two_by_two_channels(const double* x, double* y, const PoolShape& s,
                                                                  int64_t images, int64_t channels) {
  ops::two_by_two_channels(x, y, s, images, channels);
}
template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::two_by_two(const float* x, float* y, const PoolShape& s, int64_t planes) {
  ops::two_by_two(x, y, s, planes);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::two_by_two(const double* x, double* y, const PoolShape& s,
                                                         int64_t planes) {
  ops::two_by_two(x, y, s, planes);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<float>::two_by_two_back(const float* x, const float* y, const float* g, float* gx,
                                                             const PoolShape& s, int64_t planes) {
  ops::two_by_two_back(x, y, g, gx, s, planes);
}

template <>
NETMEND_VECTOR_CLONES void PoolLoops<double>::two_by_two_back(const double* x, const double* y, const double* g,
                                                              double* gx, const PoolShape& s, int64_t planes) {
  ops::two_by_two_back(x, y, g, gx, s, planes);
}

template <>
void PoolLoops<float>::positions(const float* x, int64_t* result, const PoolShape& s, int64_t planes) {
  all_positions(x, result, s, planes);
}

template <>
void PoolLoops<double>::positions(const double* x, int64_t* result, const PoolShape& s, int64_t planes) {
  all_positions(x, result, s, planes);
}

}  // namespace netmend::ops
