// Pictures moved, turned, scaled and slanted.
#include <ATen/ATen.h>

#include <cmath>

#include "inputs/mutators.h"

namespace netmend::inputs {

at::Tensor warp(const at::Tensor& picture, const Affine& m) {
  at::Tensor from = picture.contiguous(), to = at::zeros_like(from);
  const int64_t channels = from.size(0), height = from.size(1), width = from.size(2), plane = height * width;
  const double middle_y = double(height - 1) / 2, middle_x = double(width - 1) / 2;
  const float* source = from.data_ptr<float>();
  float* target = to.data_ptr<float>();
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const double dy = double(y) - middle_y, dx = double(x) - middle_x;
      const double sy = m.yy * dy + m.yx * dx + m.y0 + middle_y, sx = m.xy * dy + m.xx * dx + m.x0 + middle_x;
      const auto top = int64_t(std::floor(sy)), left = int64_t(std::floor(sx));
      const double down = sy - double(top), right = sx - double(left);
      for (int64_t corner = 0; corner < 4; ++corner) {
        const int64_t cy = top + corner / 2, cx = left + corner % 2;
        const double weight = (corner / 2 ? down : 1 - down) * (corner % 2 ? right : 1 - right);
        if (weight == 0 || cy < 0 || cy >= height || cx < 0 || cx >= width) continue;
        for (int64_t c = 0; c < channels; ++c)
          target[c * plane + y * width + x] += float(weight * double(source[c * plane + cy * width + cx]));
      }
    }
  return to;
}

}  // namespace netmend::inputs
