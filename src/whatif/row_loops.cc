#include "whatif/row_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/vector_clones.h"

namespace netmend::whatif {
namespace {

/// Bits order as the absolute values do.
NETMEND_INLINE uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffffu; }

/// exp of a number that is not above 0, to a unit in the last place or two: 2^n · exp(r) with |r| ≤ ln 2 / 2, the
/// latter by its series.
NETMEND_INLINE float exp_below(float x) {
  constexpr float kLog2 = 1.44269504088896341f, kHigh = 0.693359375f, kLow = -2.12194440e-4f, kToInteger = 12582912.0f;
  x = x < -87.0f ? -87.0f : x;
  const float n = (x * kLog2 + kToInteger) - kToInteger, r = (x - n * kHigh) - n * kLow;
  float series = 1.0f / 5040;
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1;
  series = series * r + 1;
  return series * std::bit_cast<float>((int32_t(n) + 127) << 23);
}

}  // namespace

NETMEND_VECTOR_CLONES void largest_of_rows(const float* __restrict x, int64_t rows, int64_t width,
                                           float* __restrict most) {
  for (int64_t row = 0; row < rows; ++row, x += width) {
    uint32_t bits = 0;
    for (int64_t i = 0; i < width; ++i) bits = std::max(bits, bits_of(x[i]));
    most[row] = std::bit_cast<float>(bits);
  }
}

NETMEND_VECTOR_CLONES void largest_of_lanes(const float* __restrict x, int64_t count, float* __restrict most) {
  uint32_t bits[kRowsAtOnce] = {};
  for (int64_t i = 0; i < count; ++i, x += kRowsAtOnce)
    for (int64_t l = 0; l < kRowsAtOnce; ++l) bits[l] = std::max(bits[l], bits_of(x[l]));
  for (int64_t l = 0; l < kRowsAtOnce; ++l) most[l] = std::bit_cast<float>(bits[l]);
}

NETMEND_VECTOR_CLONES void add_scaled_rows(const float* __restrict z, const float* __restrict delta,
                                           const float* __restrict w, int64_t rows, int64_t width,
                                           float* __restrict out, float* __restrict most) {
  for (int64_t row = 0; row < rows; ++row, z += width, out += width) {
    const float factor = delta[row];
    uint32_t bits = 0;
    for (int64_t i = 0; i < width; ++i) {
      out[i] = z[i] + factor * w[i];
      bits = std::max(bits, bits_of(out[i]));
    }
    most[row] = std::bit_cast<float>(bits);
  }
}

NETMEND_VECTOR_CLONES void rate_rows(const float* __restrict rows, int64_t width, RowRatings& ratings) {
  float columns[kMostColumns][kRowsAtOnce];
  for (int64_t c = 0; c < width; ++c)
    for (int64_t l = 0; l < kRowsAtOnce; ++l) columns[c][l] = rows[l * width + c];
  float value[kRowsAtOnce], margin[kRowsAtOnce], largest[kRowsAtOnce], sum[kRowsAtOnce], finite[kRowsAtOnce];
  int32_t best[kRowsAtOnce];
  for (int64_t l = 0; l < kRowsAtOnce; ++l) {
    value[l] = columns[0][l], margin[l] = std::numeric_limits<float>::infinity(), sum[l] = 0, best[l] = 0;
    largest[l] = std::abs(columns[0][l]), finite[l] = columns[0][l] * 0;
  }
  for (int64_t c = 1; c < width; ++c)
    for (int64_t l = 0; l < kRowsAtOnce; ++l) {
      const float x = columns[c][l], ahead = x - value[l];
      const bool better = ahead > 0;
      margin[l] = better ? ahead : -ahead < margin[l] ? -ahead : margin[l];
      best[l] = better ? int32_t(c) : best[l];
      value[l] = better ? x : value[l];
      const float size = std::abs(x);
      largest[l] = size > largest[l] ? size : largest[l];
      finite[l] += x * 0;
    }
  for (int64_t c = 0; c < width; ++c)
    for (int64_t l = 0; l < kRowsAtOnce; ++l) sum[l] += exp_below(columns[c][l] - value[l]);
  for (int64_t l = 0; l < kRowsAtOnce; ++l) {
    ratings.best[l] = best[l], ratings.value[l] = value[l], ratings.margin[l] = margin[l];
    ratings.largest[l] = largest[l], ratings.sum[l] = sum[l], ratings.finite[l] = finite[l];
  }
}

}  // namespace netmend::whatif
