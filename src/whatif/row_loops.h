// Loops over rows of numbers that what-if goes through for every question and input, compiled for several vector
// widths.
#pragma once

#include <cstdint>

namespace netmend::whatif {

/// The largest absolute value of each row; NaN counts as the largest.
void largest_of_rows(const float* x, int64_t rows, int64_t width, float* most);

/// out = z + delta(row) · w, row by row, and the largest absolute value of each row of it.
void add_scaled_rows(const float* z, const float* delta, const float* w, int64_t rows, int64_t width, float* out,
                     float* most);

/// The largest absolute value in each of sixteen lanes.
void largest_of_lanes(const float* x, int64_t count, float* most);

constexpr int64_t kRowsAtOnce = 16, kMostColumns = 64;

/// What sixteen rows of logits come to.
struct RowRatings {
  int32_t best[kRowsAtOnce];   ///< the first of the largest columns
  float value[kRowsAtOnce];    ///< what stands there
  float margin[kRowsAtOnce];   ///< how far behind the next one is
  float largest[kRowsAtOnce];  ///< absolute value
  float sum[kRowsAtOnce];      ///< of exp(column − value)
  float finite[kRowsAtOnce];   ///< 0 unless one is NaN or Inf
};
/// Of 2 to kMostColumns columns.
void rate_rows(const float* rows, int64_t width, RowRatings& ratings);

}  // namespace netmend::whatif
