#include "ops/input_lanes.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/vector_clones.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define NETMEND_HAS_VECTORS 1
#define NETMEND_HALF __attribute__((target("avx2,fma")))
#define NETMEND_WHOLE __attribute__((target("avx512f")))
#else
#define NETMEND_HAS_VECTORS 0
#define NETMEND_HALF
#define NETMEND_WHOLE
#endif

namespace netmend::ops {
namespace {

typedef float Whole __attribute__((vector_size(64), aligned(64), may_alias));
typedef float Half __attribute__((vector_size(32), aligned(32), may_alias));

/// A tile of sums that stands in registers: of 32 and of 16 of them, with room for what is multiplied.
constexpr int64_t kRows = 6;
template <typename V>
constexpr int64_t kColumns = sizeof(V) == 64 ? 4 : 2;
constexpr int64_t kUnits = 4;
template <typename V>
constexpr int64_t kTerms = sizeof(V) == 64 ? 6 : 3;

template <typename V>
constexpr int64_t kWidth = int64_t(sizeof(V) / sizeof(float));

template <typename V>
NETMEND_INLINE const V& load(const float* p) {
  return *reinterpret_cast<const V*>(p);
}
template <typename V>
NETMEND_INLINE void store(float* p, const V& v) {
  *reinterpret_cast<V*>(p) = v;
}

/// Nine are three times three, not twice four and one.
NETMEND_INLINE int64_t even_share(int64_t left, int64_t most) {
  const int64_t parts = (left + most - 1) / most;
  return (left + parts - 1) / parts;
}

template <typename V, int R, int C, int kStep>
NETMEND_INLINE void sum_tile(const WindowSums& s, const float* a, const float* b, float* c, const float* from,
                             const float* bias) {
  V sum[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int k = 0; k < C; ++k) {
      if (from)
        sum[r][k] = load<V>(from + r * s.c_row + k * s.c_step);
      else
        sum[r][k] = bias ? bias[r] - V{} : V{};
    }
  const float* row[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) row[r] = a + r * s.a_row;
  const int64_t *a_at = s.a_at, *b_at = s.b_at, *const end = a_at + s.terms;
  for (; a_at != end; ++a_at, ++b_at) {
    const float* window = b + *b_at;
    const int64_t at = *a_at;
    V right[C];
#pragma GCC unroll 8
    for (int k = 0; k < C; ++k) right[k] = load<V>(window + k * kStep);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const V left = row[r][at] - V{};
#pragma GCC unroll 8
      for (int k = 0; k < C; ++k) sum[r][k] += left * right[k];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int k = 0; k < C; ++k) {
      if (s.relu) sum[r][k] = sum[r][k] < 0.0f ? V{} : sum[r][k];
      store<V>(c + r * s.c_row + k * s.c_step, sum[r][k]);
    }
}

template <typename V, int C, int kStep>
NETMEND_INLINE void sum_rows(const WindowSums& s, int64_t column, int64_t lane) {
  const float* b = s.b + column * kStep + lane;
  for (int64_t row = 0, height; row < s.rows; row += height) {
    height = even_share(s.rows - row, kRows);
    const int64_t place = row * s.c_row + column * s.c_step + lane;
    float* c = s.c + place;
    const float* from = s.from ? s.from + place : nullptr;
    const float *bias = s.bias ? s.bias + row : nullptr, *a = s.a + row * s.a_row;
    switch (height) {
      case 6:
        sum_tile<V, 6, C, kStep>(s, a, b, c, from, bias);
        break;
      case 5:
        sum_tile<V, 5, C, kStep>(s, a, b, c, from, bias);
        break;
      case 4:
        sum_tile<V, 4, C, kStep>(s, a, b, c, from, bias);
        break;
      case 3:
        sum_tile<V, 3, C, kStep>(s, a, b, c, from, bias);
        break;
      case 2:
        sum_tile<V, 2, C, kStep>(s, a, b, c, from, bias);
        break;
      default:
        sum_tile<V, 1, C, kStep>(s, a, b, c, from, bias);
    }
  }
}

/// All rows of one tile's columns before the next columns: what they read is then in the first cache.
template <typename V, int kStep>
NETMEND_INLINE void all_sums(const WindowSums& s) {
  for (int64_t column = 0, width; column < s.columns; column += width) {
    width = even_share(s.columns - column, kColumns<V>);
    for (int64_t lane = 0; lane < kInputs; lane += kWidth<V>) {
      if constexpr (kColumns<V> == 4) {
        if (width == 4) sum_rows<V, 4, kStep>(s, column, lane);
        if (width == 3) sum_rows<V, 3, kStep>(s, column, lane);
      }
      if (width == 2) sum_rows<V, 2, kStep>(s, column, lane);
      if (width == 1) sum_rows<V, 1, kStep>(s, column, lane);
    }
  }
}

/// In one order whatever the width.
template <typename V>
NETMEND_INLINE float total(const V& v) {
  float t[kWidth<V>];
  std::memcpy(t, &v, sizeof v);
  for (int64_t half = kWidth<V> / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) t[i] += t[i + half];
  return t[0];
}

template <typename V, int R, int C>
NETMEND_INLINE void dot_tile(const WindowDots& s, int64_t unit, int64_t term) {
  V sum[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int k = 0; k < C; ++k) sum[r][k] = V{};
  for (int64_t lane = 0; lane < kInputs; lane += kWidth<V>)
    for (int64_t y = 0; y < s.lines; ++y) {
      const float *g[R], *x[C];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) g[r] = s.g + (unit + r) * s.g_unit + y * s.g_line + lane;
#pragma GCC unroll 8
      for (int k = 0; k < C; ++k) x[k] = s.x + s.x_at[term + k] + y * s.x_line + lane;
      for (int64_t i = 0; i < s.columns; ++i) {
        V left[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) left[r] = load<V>(g[r] + i * kInputs);
#pragma GCC unroll 8
        for (int k = 0; k < C; ++k) {
          const V right = load<V>(x[k] + i * s.x_step);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) sum[r][k] += left[r] * right;
        }
      }
    }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int k = 0; k < C; ++k) {
      float* to = s.to + (unit + r) * s.terms + term + k;
      *to = (s.add ? *to : 0.0f) + total(sum[r][k]);
    }
}

template <typename V, int R>
NETMEND_INLINE void dot_terms(const WindowDots& s, int64_t unit) {
  for (int64_t term = 0, width; term < s.terms; term += width) {
    width = even_share(s.terms - term, kTerms<V>);
    if constexpr (kTerms<V> == 6) {
      if (width == 6) dot_tile<V, R, 6>(s, unit, term);
      if (width == 5) dot_tile<V, R, 5>(s, unit, term);
      if (width == 4) dot_tile<V, R, 4>(s, unit, term);
    }
    if (width == 3) dot_tile<V, R, 3>(s, unit, term);
    if (width == 2) dot_tile<V, R, 2>(s, unit, term);
    if (width == 1) dot_tile<V, R, 1>(s, unit, term);
  }
}

template <typename V>
NETMEND_INLINE void all_dots(const WindowDots& s) {
  for (int64_t unit = 0, height; unit < s.units; unit += height) {
    height = even_share(s.units - unit, kUnits);
    if (height == 4) dot_terms<V, 4>(s, unit);
    if (height == 3) dot_terms<V, 3>(s, unit);
    if (height == 2) dot_terms<V, 2>(s, unit);
    if (height == 1) dot_terms<V, 1>(s, unit);
  }
}

NETMEND_WHOLE void whole_sums(const WindowSums& s) {
  s.b_step == kInputs ? all_sums<Whole, kInputs>(s) : all_sums<Whole, 2 * kInputs>(s);
}
NETMEND_HALF void half_sums(const WindowSums& s) {
  s.b_step == kInputs ? all_sums<Half, kInputs>(s) : all_sums<Half, 2 * kInputs>(s);
}
NETMEND_WHOLE void whole_dots(const WindowDots& s) { all_dots<Whole>(s); }
NETMEND_HALF void half_dots(const WindowDots& s) { all_dots<Half>(s); }

/// f(i) for all lanes.
template <typename F>
NETMEND_INLINE void in_lanes(F f) {
#pragma omp simd
  for (int64_t l = 0; l < kInputs; ++l) f(l);
}

/// f(channel, y) with the places where that line begins in each plane.
template <typename F, typename... Planes>
NETMEND_INLINE void each_line(F f, const Plane& first, const Planes&... others) {
  for (int64_t c = 0; c < first.channels; ++c)
    for (int64_t y = 0; y < first.height; ++y)
      f(c, y, c * first.channel() + first.at(y, 0), (c * others.channel() + others.at(y, 0))...);
}

NETMEND_INLINE float larger(float best, float value) { return (value > best) | (value != value) ? value : best; }

/// Windows of two by two side by side, the shape that most networks have.
NETMEND_INLINE void two_by_two(const float* __restrict x, const Plane& in, const LanePool& pool, bool relu,
                               float* __restrict y, const Plane& out) {
  for (int64_t c = 0; c < out.channels; ++c)
    for (int64_t h = 0; h < out.height; ++h) {
      const float *a = x + c * in.channel() + in.at(h * pool.stride_y, 0), *b = a + in.line();
      float* to = y + c * out.channel() + out.at(h, 0);
      for (int64_t w = 0; w < out.width; ++w, a += pool.stride_x * kInputs, b += pool.stride_x * kInputs, to += kInputs)
        in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
          const float most = larger(larger(larger(a[l], a[l + kInputs]), b[l]), b[l + kInputs]);
          to[l] = relu & (most < 0) ? 0.0f : most;
        });
    }
}

constexpr int64_t kBlock = 64;  ///< pixels that are summed in float before they are added in double

/// Adds the first lanes of a block's sums.
NETMEND_INLINE void flush(float* sums, int64_t count, double& to) {
  for (int64_t l = 0; l < count; ++l) to += double(sums[l]);
  in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA { sums[l] = 0; });
}

}  // namespace

Vectors widest_vectors() {
#if NETMEND_HAS_VECTORS
  if (__builtin_cpu_supports("avx512f")) return Vectors::kWhole;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Vectors::kHalf;
#endif
  return Vectors::kNone;
}

void window_sums(Vectors vectors, const WindowSums& sums) {
  vectors == Vectors::kWhole ? whole_sums(sums) : half_sums(sums);
}
void window_dots(Vectors vectors, const WindowDots& dots) {
  vectors == Vectors::kWhole ? whole_dots(dots) : half_dots(dots);
}

NETMEND_VECTOR_CLONES void rows_to_lanes(const float* __restrict rows, int64_t stride, int64_t count,
                                         float* __restrict lanes, const Plane& plane) {
  each_line(
      [&](int64_t c, int64_t y, int64_t at) NETMEND_INLINE_LAMBDA {
        const float* from = rows + (c * plane.height + y) * plane.width;
        float* to = lanes + at;
        if (count == kInputs) {
          for (int64_t x = 0; x < plane.width; ++x)
            for (int64_t l = 0; l < kInputs; ++l) to[x * kInputs + l] = from[l * stride + x];
          return;
        }
        for (int64_t x = 0; x < plane.width; ++x)
          for (int64_t l = 0; l < kInputs; ++l) to[x * kInputs + l] = l < count ? from[l * stride + x] : 0.0f;
      },
      plane);
}

NETMEND_VECTOR_CLONES void lanes_to_rows(const float* __restrict lanes, const Plane& plane, int64_t count,
                                         float* __restrict rows, int64_t stride) {
  each_line(
      [&](int64_t c, int64_t y, int64_t at) NETMEND_INLINE_LAMBDA {
        const float* from = lanes + at;
        float* to = rows + (c * plane.height + y) * plane.width;
        for (int64_t l = 0; l < count; ++l)
          for (int64_t x = 0; x < plane.width; ++x) to[l * stride + x] = from[x * kInputs + l];
      },
      plane);
}

NETMEND_VECTOR_CLONES void pool_lanes(const float* __restrict x, const Plane& in, const LanePool& pool, bool relu,
                                      float* __restrict y, const Plane& out, int8_t* __restrict which) {
  const bool inside = (out.height - 1) * pool.stride_y + pool.height <= in.height &&
                      (out.width - 1) * pool.stride_x + pool.width <= in.width;
  if (!which && pool.apart() && inside && pool.height == 2 && pool.width == 2)
    return two_by_two(x, in, pool, relu, y, out);
  each_line(
      [&](int64_t c, int64_t h, int64_t at) NETMEND_INLINE_LAMBDA {
        for (int64_t w = 0; w < out.width; ++w) {
          float most[kInputs];
          int32_t place[kInputs];
          in_lanes([&](int64_t l)
                       NETMEND_INLINE_LAMBDA { most[l] = -std::numeric_limits<float>::infinity(), place[l] = -1; });
          for (int64_t i = 0; i < pool.height; ++i)
            for (int64_t j = 0; j < pool.width; ++j) {
              const int64_t row = h * pool.stride_y - pool.top + i, column = w * pool.stride_x - pool.left + j;
              if (row < 0 || row >= in.height || column < 0 || column >= in.width) continue;
              const float* from = x + c * in.channel() + in.at(row, column);
              const auto number = int32_t(i * pool.width + j);
              in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
                const bool larger = (!(from[l] <= most[l]) & (most[l] == most[l])) | (place[l] < 0);
                most[l] = larger ? from[l] : most[l];
                place[l] = larger ? number : place[l];
              });
            }
          float* to = y + at + w * kInputs;
          in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
            to[l] = relu & (most[l] < 0) ? 0.0f : most[l];
            if (which) which[l] = int8_t(place[l]);
          });
          if (which) which += kInputs;
        }
      },
      out);
}

NETMEND_VECTOR_CLONES void unpool_lanes(const float* __restrict g, const Plane& g_plane, const float* __restrict y,
                                        const Plane& out, const int8_t* __restrict which, const LanePool& pool,
                                        bool relu, float* __restrict gx, const Plane& gx_plane, bool add) {
  each_line(
      [&](int64_t c, int64_t h, int64_t at, int64_t g_at) NETMEND_INLINE_LAMBDA {
        for (int64_t w = 0; w < out.width; ++w, which += kInputs) {
          float left[kInputs];
          int32_t place[kInputs];
          const float *gradient = g + g_at + w * kInputs, *result = y + at + w * kInputs;
          in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
            left[l] = relu & (result[l] <= 0) ? 0.0f : gradient[l];
            place[l] = which[l];
          });
          for (int64_t i = 0; i < pool.height; ++i)
            for (int64_t j = 0; j < pool.width; ++j) {
              const int64_t row = h * pool.stride_y - pool.top + i, column = w * pool.stride_x - pool.left + j;
              if (row < 0 || row >= gx_plane.height || column < 0 || column >= gx_plane.width) continue;
              float* to = gx + c * gx_plane.channel() + gx_plane.at(row, column);
              const auto number = int32_t(i * pool.width + j);
              if (add)
                in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA { to[l] += place[l] == number ? left[l] : 0.0f; });
              else
                in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA { to[l] = place[l] == number ? left[l] : 0.0f; });
            }
        }
      },
      out, g_plane);
}

NETMEND_VECTOR_CLONES void mask_and_sum(float* __restrict g, const Plane& g_plane, const float* __restrict y,
                                        const Plane& y_plane, bool relu, float* sums) {
  for (int64_t c = 0; c < g_plane.channels; ++c) {
    float sum[kInputs] = {};
    for (int64_t h = 0; h < g_plane.height; ++h) {
      float* to = g + c * g_plane.channel() + g_plane.at(h, 0);
      const float* result = y + c * y_plane.channel() + y_plane.at(h, 0);
      for (int64_t i = 0; i < g_plane.width; ++i, to += kInputs, result += kInputs)
        in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
          const float kept = relu & (result[l] <= 0) ? 0.0f : to[l];
          to[l] = kept;
          sum[l] += kept;
        });
    }
    float all = 0;
    for (float one : sum) all += one;
    if (sums) sums[c] += all;
  }
}

NETMEND_VECTOR_CLONES void lane_moments(const float* __restrict x, const Plane& plane, const float* shift,
                                        int64_t count, double* first, double* second) {
  for (int64_t c = 0; c < plane.channels; ++c) {
    float one[kInputs] = {}, two[kInputs] = {};
    int64_t pixels = 0;
    const float around = shift[c];
    for (int64_t h = 0; h < plane.height; ++h) {
      const float* from = x + c * plane.channel() + plane.at(h, 0);
      for (int64_t i = 0; i < plane.width; ++i, from += kInputs) {
        in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
          const float d = from[l] - around;
          one[l] += d;
          two[l] += d * d;
        });
        if (++pixels == kBlock) flush(one, count, first[c]), flush(two, count, second[c]), pixels = 0;
      }
    }
    flush(one, count, first[c]), flush(two, count, second[c]);
  }
}

NETMEND_VECTOR_CLONES void lane_scale(const float* __restrict x, const Plane& in, const float* factor,
                                      const float* offset, bool relu, float* __restrict y, const Plane& out) {
  each_line(
      [&](int64_t c, int64_t, int64_t to_at, int64_t from_at) NETMEND_INLINE_LAMBDA {
        const float a = factor[c], b = offset[c];
        const float* from = x + from_at;
        float* to = y + to_at;
        const int64_t count = out.width * kInputs;
        if (relu) {
          for (int64_t i = 0; i < count; ++i) {
            const float value = from[i] * a + b;
            to[i] = value < 0 ? 0.0f : value;
          }
        } else {
          for (int64_t i = 0; i < count; ++i) to[i] = from[i] * a + b;
        }
      },
      out, in);
}

NETMEND_VECTOR_CLONES void lane_products(float* __restrict g, const Plane& g_plane, const float* __restrict y,
                                         const Plane& y_plane, bool relu, const float* __restrict x, const Plane& in,
                                         const float* shift, int64_t count, double* first, double* second) {
  for (int64_t c = 0; c < in.channels; ++c) {
    float one[kInputs] = {}, two[kInputs] = {};
    int64_t pixels = 0;
    const float around = shift[c];
    for (int64_t h = 0; h < in.height; ++h) {
      float* to = g + c * g_plane.channel() + g_plane.at(h, 0);
      const float *result = y + c * y_plane.channel() + y_plane.at(h, 0), *from = x + c * in.channel() + in.at(h, 0);
      for (int64_t i = 0; i < in.width; ++i, to += kInputs, result += kInputs, from += kInputs) {
        in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
          const float kept = relu & (result[l] <= 0) ? 0.0f : to[l];
          to[l] = kept;
          one[l] += kept;
          two[l] += kept * (from[l] - around);
        });
        if (++pixels == kBlock) flush(one, count, first[c]), flush(two, count, second[c]), pixels = 0;
      }
    }
    flush(one, count, first[c]), flush(two, count, second[c]);
  }
}

NETMEND_VECTOR_CLONES void lane_combine(const float* __restrict g, const Plane& g_plane, const float* __restrict x,
                                        const Plane& in, const float* a, const float* b, const float* c, int64_t count,
                                        float* __restrict gx, const Plane& gx_plane, bool add) {
  float there[kInputs];
  for (int64_t l = 0; l < kInputs; ++l) there[l] = l < count ? 1.0f : 0.0f;
  each_line(
      [&](int64_t k, int64_t, int64_t x_at, int64_t g_at, int64_t to_at) NETMEND_INLINE_LAMBDA {
        const float one = a[k], two = b[k], three = c[k];
        const float *gradient = g + g_at, *from = x + x_at;
        float* to = gx + to_at;
        for (int64_t i = 0; i < in.width; ++i, gradient += kInputs, from += kInputs, to += kInputs)
          in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA {
            const float value = (gradient[l] * one + from[l] * two + three) * there[l];
            to[l] = add ? to[l] + value : value;
          });
      },
      in, g_plane, gx_plane);
}

NETMEND_VECTOR_CLONES void add_lanes(const float* __restrict a, const Plane& a_plane, const float* __restrict b,
                                     const Plane& b_plane, bool relu, float* __restrict y, const Plane& out) {
  each_line(
      [&](int64_t, int64_t, int64_t to_at, int64_t a_at, int64_t b_at) NETMEND_INLINE_LAMBDA {
        const float *one = a + a_at, *two = b + b_at;
        float* to = y + to_at;
        for (int64_t i = 0; i < out.width * kInputs; ++i) {
          const float value = one[i] + two[i];
          to[i] = relu & (value < 0) ? 0.0f : value;
        }
      },
      out, a_plane, b_plane);
}

NETMEND_VECTOR_CLONES void pass_lanes(const float* __restrict from, const Plane& plane, float* __restrict to,
                                      const Plane& to_plane, bool add) {
  each_line(
      [&](int64_t, int64_t, int64_t from_at, int64_t to_at) NETMEND_INLINE_LAMBDA {
        for (int64_t i = 0; i < plane.width * kInputs; ++i)
          to[to_at + i] = add ? to[to_at + i] + from[from_at + i] : from[from_at + i];
      },
      plane, to_plane);
}

NETMEND_VECTOR_CLONES void multiply_lanes(const float* __restrict from, const Plane& plane, const float* __restrict by,
                                          float* __restrict to, const Plane& to_plane, bool add) {
  each_line(
      [&](int64_t c, int64_t y, int64_t from_at, int64_t to_at) NETMEND_INLINE_LAMBDA {
        const float* factor = by + (c * plane.height + y) * plane.width * kInputs;
        for (int64_t i = 0; i < plane.width * kInputs; ++i) {
          const float value = from[from_at + i] * factor[i];
          to[to_at + i] = add ? to[to_at + i] + value : value;
        }
      },
      plane, to_plane);
}

NETMEND_VECTOR_CLONES void mean_to_rows(const float* __restrict x, const Plane& plane, int64_t count,
                                        float* __restrict rows, int64_t stride) {
  for (int64_t c = 0; c < plane.channels; ++c) {
    float sum[kInputs] = {};
    for (int64_t h = 0; h < plane.height; ++h) {
      const float* from = x + c * plane.channel() + plane.at(h, 0);
      for (int64_t i = 0; i < plane.width; ++i, from += kInputs)
        in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA { sum[l] += from[l]; });
    }
    for (int64_t l = 0; l < count; ++l) rows[l * stride + c] = sum[l] / float(plane.height * plane.width);
  }
}

NETMEND_VECTOR_CLONES void mean_from_rows(const float* __restrict rows, int64_t stride, int64_t count,
                                          float* __restrict gx, const Plane& plane, bool add) {
  for (int64_t c = 0; c < plane.channels; ++c) {
    float share[kInputs] = {};
    for (int64_t l = 0; l < count; ++l) share[l] = rows[l * stride + c] / float(plane.height * plane.width);
    for (int64_t h = 0; h < plane.height; ++h) {
      float* to = gx + c * plane.channel() + plane.at(h, 0);
      for (int64_t i = 0; i < plane.width; ++i, to += kInputs)
        in_lanes([&](int64_t l) NETMEND_INLINE_LAMBDA { to[l] = add ? to[l] + share[l] : share[l]; });
    }
  }
}

}  // namespace netmend::ops
