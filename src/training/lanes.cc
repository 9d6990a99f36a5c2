#include "training/lanes.h"

#include <algorithm>
#include <cstring>

#include "ops/vector_clones.h"

// Sums are fused multiply-adds on every machine that has them, so that vectors of 512 and 256 bits round alike.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define NETMEND_FUSED_CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define NETMEND_FUSED_CLONES
#endif

namespace netmend::training {
namespace {

typedef float Lanes __attribute__((vector_size(64), aligned(64), may_alias));
typedef int32_t Ints __attribute__((vector_size(64), aligned(64), may_alias));
typedef int8_t Bytes __attribute__((vector_size(16), aligned(16), may_alias));

constexpr int64_t kTile = 4;     ///< rows and columns whose sums stand in registers
constexpr int64_t kDepth = 128;  ///< steps at a time: what a tile reads stays in the first cache

NETMEND_INLINE const Lanes& group(const float* p, int64_t place) {
  return *reinterpret_cast<const Lanes*>(p + place * kLanes);
}
NETMEND_INLINE Lanes& group(float* p, int64_t place) { return *reinterpret_cast<Lanes*>(p + place * kLanes); }

template <int M, int N, bool kShared>
NETMEND_INLINE void tile(const LaneProduct& p, int64_t row, int64_t column, int64_t first, int64_t last, bool add) {
  Lanes sum[M][N];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      if (add)
        sum[m][n] = group(p.c, p.c_row[row + m] + p.c_column[column + n]);
      else if (p.bias)
        sum[m][n] = group(p.bias, row + m);
      else
        sum[m][n] = Lanes{};
    }
  const float *a[M], *b[N];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) a[m] = p.a + p.a_row[row + m] * kLanes;
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) b[n] = p.b + p.b_column[column + n] * (kShared ? 1 : kLanes);
  for (int64_t k = first; k < last; ++k) {
    const int64_t a_step = p.a_step[k], b_step = p.b_step[k];
    Lanes left[M];
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) left[m] = group(a[m], a_step);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      Lanes right;
      if constexpr (kShared)
        right = b[n][b_step] - Lanes{};
      else
        right = group(b[n], b_step);
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) sum[m][n] += left[m] * right;
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) group(p.c, p.c_row[row + m] + p.c_column[column + n]) = sum[m][n];
}

template <int M, bool kShared>
NETMEND_INLINE void tiles(const LaneProduct& p, int64_t row, int64_t first, int64_t last, bool add) {
  for (int64_t left = p.columns, column = 0; left > 0;) {
    // Nine columns are three tiles of three, not two of four and one of one.
    const int64_t parts = (left + kTile - 1) / kTile, width = (left + parts - 1) / parts;
    switch (width) {
      case 4:
        tile<M, 4, kShared>(p, row, column, first, last, add);
        break;
      case 3:
        tile<M, 3, kShared>(p, row, column, first, last, add);
        break;
      case 2:
        tile<M, 2, kShared>(p, row, column, first, last, add);
        break;
      default:
        tile<M, 1, kShared>(p, row, column, first, last, add);
    }
    column += width, left -= width;
  }
}

template <bool kShared>
NETMEND_INLINE void whole(const LaneProduct& p) {
  for (int64_t left = p.rows, row = 0; left > 0;) {
    const int64_t parts = (left + kTile - 1) / kTile, height = (left + parts - 1) / parts;
    int64_t first = 0;
    do {
      const int64_t last = std::min(first + kDepth, p.steps);
      const bool add = p.add || first > 0;
      switch (height) {
        case 4:
          tiles<4, kShared>(p, row, first, last, add);
          break;
        case 3:
          tiles<3, kShared>(p, row, first, last, add);
          break;
        case 2:
          tiles<2, kShared>(p, row, first, last, add);
          break;
        default:
          tiles<1, kShared>(p, row, first, last, add);
      }
      first = last;
    } while (first < p.steps);
    row += height, left -= height;
  }
}

}  // namespace

NETMEND_FUSED_CLONES void product_with_lanes(const LaneProduct& p) { whole<false>(p); }
NETMEND_FUSED_CLONES void product_with_shared(const LaneProduct& p) { whole<true>(p); }

void lane_product(const LaneProduct& p) { p.shared ? product_with_shared(p) : product_with_lanes(p); }

// Comparisons stand in plain loops: before a function is cloned GCC takes those of vectors apart, lane by lane.
NETMEND_FUSED_CLONES void lane_pool(const float* __restrict from, int64_t windows, int64_t window, bool relu,
                                    float* __restrict to, int8_t* __restrict which) {
  for (int64_t w = 0; w < windows; ++w, from += window * kLanes) {
    float most[kLanes];
    int32_t place[kLanes] = {};
#pragma omp simd
    for (int64_t l = 0; l < kLanes; ++l) most[l] = from[l];
    for (int64_t i = 1; i < window; ++i)
#pragma omp simd
      for (int64_t l = 0; l < kLanes; ++l) {
        const float x = from[i * kLanes + l];
        const bool larger = !(x <= most[l]) & (most[l] == most[l]);
        most[l] = larger ? x : most[l];
        place[l] = larger ? int32_t(i) : place[l];
      }
#pragma omp simd
    for (int64_t l = 0; l < kLanes; ++l) {
      to[w * kLanes + l] = relu & (most[l] < 0) ? 0.0f : most[l];
      which[w * kLanes + l] = int8_t(place[l]);
    }
  }
}

NETMEND_FUSED_CLONES void lane_unpool(const float* gradient, const float* result, const int8_t* which, int64_t windows,
                                      int64_t window, bool relu, float* to, float* sum) {
  Lanes all = group(sum, 0);
  for (int64_t w = 0; w < windows; ++w, to += window * kLanes) {
    Lanes g = group(gradient, w);
    if (relu) g = group(result, w) <= 0.0f ? Lanes{} : g;
    all += g;
    const Ints place = __builtin_convertvector(*reinterpret_cast<const Bytes*>(which + w * kLanes), Ints);
    for (int64_t i = 0; i < window; ++i) group(to, i) = place == int32_t(i) ? g : Lanes{};
  }
  group(sum, 0) = all;
}

NETMEND_FUSED_CLONES void lane_relu(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) group(x, i) = group(x, i) < 0.0f ? Lanes{} : group(x, i);
}

NETMEND_FUSED_CLONES void lane_relu_back(float* gradient, const float* result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) group(gradient, i) = group(result, i) <= 0.0f ? Lanes{} : group(gradient, i);
}

NETMEND_FUSED_CLONES void lane_sum(const float* from, int64_t rows, int64_t stride, float* sum) {
  Lanes all = group(sum, 0);
  for (int64_t i = 0; i < rows; ++i) all += group(from, i * stride);
  group(sum, 0) = all;
}

}  // namespace netmend::training
