// Arithmetic of one network on sixteen inputs at once: every number of an image stands beside the same number of the
// other fifteen (a lane each). So windows need no shuffling whatever their size, and convolutions of few channels fill
// the core's vectors as well as those of many. Only for cores with vectors of at least 256 bits.
#pragma once

#include <cstdint>

namespace netmend::ops {

constexpr int64_t kInputs = 16;  ///< lanes: inputs that are computed together

/// The widest vectors that a core has and these loops know.
enum class Vectors { kNone, kHalf, kWhole };
Vectors widest_vectors();

/// An image of all lanes with a margin of zeros around each channel. Distances are counted in floats.
struct Plane {
  int64_t channels = 0, height = 0, width = 0;
  int64_t top = 0, left = 0, bottom = 0, right = 0;

  int64_t line() const { return (left + width + right) * kInputs; }
  int64_t channel() const { return (top + height + bottom) * line(); }
  int64_t all() const { return channels * channel(); }
  /// Where the first pixel of the first channel stands.
  int64_t first() const { return at(0, 0); }
  int64_t at(int64_t y, int64_t x) const { return (top + y) * line() + (left + x) * kInputs; }
};

/// c(row, column) = bias(row) + sum over terms of a[row · a_row + a_at[term]] · b[b_at[term] + column · b_step], where
/// a are single numbers (weights), and b and c have lanes.
struct WindowSums {
  const float* a = nullptr;
  int64_t a_row = 0;
  const int64_t* a_at = nullptr;
  const float* b = nullptr;
  const int64_t* b_at = nullptr;
  int64_t b_step = kInputs;  ///< kInputs or twice as much
  int64_t terms = 0;
  float* c = nullptr;
  int64_t c_row = 0, c_step = kInputs;
  int64_t rows = 0, columns = 0;
  const float* bias = nullptr;  ///< null for none
  bool relu = false;
  const float* from = nullptr;  ///< where sums start instead of the bias, laid out as c
};
void window_sums(Vectors vectors, const WindowSums& sums);

/// to[unit · terms + term] (+)= sum over lines, columns and lanes of g · x: the gradient of a convolution's weights.
struct WindowDots {
  const float* g = nullptr;
  int64_t g_unit = 0, g_line = 0;
  const float* x = nullptr;
  const int64_t* x_at = nullptr;
  int64_t x_line = 0, x_step = kInputs;
  int64_t units = 0, terms = 0, lines = 0, columns = 0;
  float* to = nullptr;
  bool add = false;
};
void window_dots(Vectors vectors, const WindowDots& dots);

/// Rows of numbers, one for each of `count` inputs, `stride` apart, into lanes, the others of which become 0; and back.
void rows_to_lanes(const float* rows, int64_t stride, int64_t count, float* lanes, const Plane& plane);
void lanes_to_rows(const float* lanes, const Plane& plane, int64_t count, float* rows, int64_t stride);

struct LanePool {
  int64_t height = 1, width = 1, stride_y = 1, stride_x = 1, top = 0, left = 0;  ///< the window; padding
  bool apart() const { return stride_y >= height && stride_x >= width && top == 0 && left == 0; }
};
/// The largest of each window (NaN wins), with relu where asked, and its place in the window, a byte each; `which` may
/// be null.
void pool_lanes(const float* x, const Plane& in, const LanePool& pool, bool relu, float* y, const Plane& out,
                int8_t* which);
/// The way back; adds to gx unless the windows are apart and it is told not to. Where relu cut off nothing passes.
void unpool_lanes(const float* g, const Plane& g_plane, const float* y, const Plane& out, const int8_t* which,
                  const LanePool& pool, bool relu, float* gx, const Plane& gx_plane, bool add);

/// Where relu gave 0 the gradient becomes 0; with sums, each channel's is added to sums[channel].
void mask_and_sum(float* g, const Plane& g_plane, const float* y, const Plane& y_plane, bool relu, float* sums);

/// Sums of (x − shift) and of its square, channel by channel, over the first `count` lanes.
void lane_moments(const float* x, const Plane& plane, const float* shift, int64_t count, double* first, double* second);
/// y = x · factor + offset, channel by channel, and relu.
void lane_scale(const float* x, const Plane& in, const float* factor, const float* offset, bool relu, float* y,
                const Plane& out);
/// Masks g as mask_and_sum does; sums of g and of g · (x − shift) over the first `count` lanes.
void lane_products(float* g, const Plane& g_plane, const float* y, const Plane& y_plane, bool relu, const float* x,
                   const Plane& in, const float* shift, int64_t count, double* first, double* second);
/// gx (+)= g · a + x · b + c, channel by channel, in the first `count` lanes and 0 in the others.
void lane_combine(const float* g, const Plane& g_plane, const float* x, const Plane& in, const float* a, const float* b,
                  const float* c, int64_t count, float* gx, const Plane& gx_plane, bool add);
/// y = a + b, and relu.
void add_lanes(const float* a, const Plane& a_plane, const float* b, const Plane& b_plane, bool relu, float* y,
               const Plane& out);
/// to (+)= from
void pass_lanes(const float* from, const Plane& plane, float* to, const Plane& to_plane, bool add);
/// to = from · by (+ what is there); `by` has lanes and no margin.
void multiply_lanes(const float* from, const Plane& plane, const float* by, float* to, const Plane& to_plane, bool add);
/// Means of each channel, one row of channels for each of `count` inputs; and the way back.
void mean_to_rows(const float* x, const Plane& plane, int64_t count, float* rows, int64_t stride);
void mean_from_rows(const float* rows, int64_t stride, int64_t count, float* gx, const Plane& plane, bool add);

}  // namespace netmend::ops
