// The loops of max pooling over plain memory, compiled for several vector widths. `planes` are batch × channels, each
// of in_plane() or out_plane() elements; `images` have their channels innermost. Results are written, gradients gx
// added to memory that starts as zeros.
#pragma once

#include <array>
#include <cstdint>

namespace netmend::ops {

/// A window over depth, height and width; axes that a tensor lacks have size 1.
struct PoolShape {
  std::array<int64_t, 3> in, out, kernel, stride, dilation, begin;

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  /// Elements of a row that the windows of one row of outputs span, padding included.
  int64_t row_width() const { return (out[2] - 1) * stride[2] + (kernel[2] - 1) * dilation[2] + 1; }
  /// Windows of two by two side by side, without padding: the shape that most networks have, with loops of its own.
  bool is_two_by_two() const;
};

constexpr int kPoolChunk = 16;  ///< elements that loops work on at once

/// For float and double. `row` is room for row_width() elements, `left` for out[2] of them or for the channels.
template <typename T>
struct PoolLoops {
  static void by_rows(const T* x, T* y, const PoolShape& shape, int64_t planes, T* row);
  static void by_rows_back(const T* x, const T* y, const T* g, T* gx, const PoolShape& shape, int64_t planes, T* left);
  static void by_channels(const T* x, T* y, const PoolShape& shape, int64_t images, int64_t channels);
  static void by_channels_back(const T* x, const T* y, const T* g, T* gx, const PoolShape& shape, int64_t images,
                               int64_t channels, T* left);
  static void two_by_two(const T* x, T* y, const PoolShape& shape, int64_t planes);
  /// For even widths; `half` is room for out[1] · in[2] + kPoolChunk elements.
  static void two_by_two_even(const T* x, T* y, const PoolShape& shape, int64_t planes, T* half);
  static void two_by_two_channels(const T* x, T* y, const PoolShape& shape, int64_t images, int64_t channels);
  static void two_by_two_back(const T* x, const T* y, const T* g, T* gx, const PoolShape& shape, int64_t planes);
  /// For every window the position of its first maximum in its plane, or −1.
  static void positions(const T* x, int64_t* result, const PoolShape& shape, int64_t planes);
};

}  // namespace netmend::ops
