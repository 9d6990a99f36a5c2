// The arithmetic that convolution and pooling share: how a window of some size walks over each spatial axis.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace netmend::ops {

enum class AutoPad { kNotSet, kValid, kSameUpper, kSameLower };

/// The attributes as the file gives them, checked; empty lists mean "the default for every axis".
struct WindowAttributes {
  std::vector<int64_t> kernel, strides, dilations, pads;
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;

  explicit WindowAttributes(const NodeView& node);
};

/// One window for each spatial axis of a tensor.
struct Window {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> begin, end;  ///< padding
  std::vector<int64_t> output;      ///< number of positions

  size_t rank() const { return kernel.size(); }
  bool symmetric() const { return begin == end; }
  /// Padding at the end so that every position finds its elements: less or more than `end` in floor and ceil mode.
  int64_t needed_end(size_t axis, int64_t size) const;
  /// How many elements of an axis a window spans.
  int64_t span(size_t axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
};

/// The window on spatial sizes. Throws InputError when the numbers do not fit the sizes.
Window window_over(const WindowAttributes& attributes, at::IntArrayRef kernel, at::IntArrayRef sizes);

/// x with `begin` and `end` elements of `value` added to its last axes.
at::Tensor pad_spatial(const at::Tensor& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                       at::Scalar value);

}  // namespace netmend::ops
