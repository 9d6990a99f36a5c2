// Pictures out of focus.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "inputs/mutators.h"

namespace netmend::inputs {
namespace {

/// A place beyond the edge, mirrored at the outermost pixel: … 2 1 | 0 1 2 …
int64_t mirrored(int64_t i, int64_t size) {
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  i = ((i % period) + period) % period;
  return i < size ? i : period - i;
}

/// Weighted sums of neighbours along rows or columns; `before` of them lie before the pixel.
at::Tensor filtered(const at::Tensor& picture, const std::vector<double>& weights, int64_t before, int64_t axis) {
  const int64_t size = picture.size(axis);
  at::Tensor sum = at::zeros_like(picture);
  for (size_t k = 0; k < weights.size(); ++k) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < size; ++i) places.push_back(mirrored(i + int64_t(k) - before, size));
    sum.add_(picture.index_select(axis, at::tensor(places, at::kLong)), weights[k]);
  }
  return sum;
}

at::Tensor both_ways(const at::Tensor& picture, const std::vector<double>& weights, int64_t before) {
  return filtered(filtered(picture, weights, before, 1), weights, before, 2);
}

}  // namespace

at::Tensor mean_blur(const at::Tensor& picture, int64_t size) {
  return both_ways(picture, std::vector<double>(size_t(size), 1 / double(size)), size / 2);
}

at::Tensor gaussian_blur(const at::Tensor& picture, int64_t size) {
  check(size == 3 || size == 5 || size == 7, "a Gaussian blur of size {}", size);
  static const std::vector<double> three{0.25, 0.5, 0.25}, five{0.0625, 0.25, 0.375, 0.25, 0.0625},
      seven{0.03125, 0.109375, 0.21875, 0.28125, 0.21875, 0.109375, 0.03125};
  return both_ways(picture, size == 3 ? three : size == 5 ? five : seven, size / 2);
}

at::Tensor median_blur(const at::Tensor& picture, int64_t size) {
  at::Tensor from = picture.contiguous(), to = at::empty_like(from);
  const int64_t height = from.size(1), width = from.size(2), reach = size / 2;
  std::vector<float> around(static_cast<size_t>(size * size));
  for (int64_t c = 0; c < from.size(0); ++c) {
    const float* source = from.data_ptr<float>() + c * height * width;
    float* target = to.data_ptr<float>() + c * height * width;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        auto next = around.begin();
        for (int64_t dy = -reach; dy <= reach; ++dy)
          for (int64_t dx = -reach; dx <= reach; ++dx)
            *next++ =
                source[std::clamp<int64_t>(y + dy, 0, height - 1) * width + std::clamp<int64_t>(x + dx, 0, width - 1)];
        auto middle = around.begin() + int64_t(around.size() / 2);
        std::nth_element(around.begin(), middle, around.end());
        target[y * width + x] = *middle;
      }
  }
  return to;
}

}  // namespace netmend::inputs
