// Changing the size of images exactly as Pillow does it (https://pillow.readthedocs.io, "Filters"): a separable filter,
// rows first, 8-bit images rounded after each of the two passes. Frameworks train on what this gives.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "dataset/preprocess.h"

namespace netmend::dataset {

/// Pixels somewhere in memory; strides count values.
template <typename T>
struct PixelView {
  const T* data = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t row_stride = 0, column_stride = 0, channel_stride = 0;
};

template <typename T>
PixelView<T> interleaved(const T* data, int64_t height, int64_t width, int64_t channels) {
  return {data, height, width, channels, width * channels, channels, 1};
}
template <typename T>
PixelView<T> planar(const T* data, int64_t height, int64_t width, int64_t channels) {
  return {data, height, width, channels, width, 1, height * width};
}

/// Height and width that `resize` makes of an image.
std::pair<int64_t, int64_t> resized(int64_t height, int64_t width, const Resize& resize);

/// The image in its new size, interleaved. T is uint8_t or float.
template <typename T>
std::vector<T> resample(const PixelView<T>& image, const Resize& resize);

}  // namespace netmend::dataset
