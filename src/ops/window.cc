#include "ops/window.h"

#include <algorithm>

#include "ops/arguments.h"

namespace netmend::ops {
namespace {

constexpr int64_t kLargest = int64_t(1) << 30;  // of a kernel, stride, dilation or pad; larger ones are nonsense

std::vector<int64_t> bounded(const NodeView& node, const char* name, int64_t low) {
  std::vector<int64_t> list = node.integers(name);
  for (int64_t value : list) node.require(value >= low && value <= kLargest, "{} holds {}", name, value);
  return list;
}

AutoPad auto_pad_of(const NodeView& node) {
  std::string name = node.text("auto_pad", "NOTSET");
  if (name == "NOTSET" || name.empty()) return AutoPad::kNotSet;
  if (name == "VALID") return AutoPad::kValid;
  if (name == "SAME_UPPER") return AutoPad::kSameUpper;
  node.require(name == "SAME_LOWER", "auto_pad is {}", name);
  return AutoPad::kSameLower;
}

std::vector<int64_t> or_default(const std::vector<int64_t>& list, size_t rank, int64_t value, const char* name) {
  if (list.empty()) return std::vector<int64_t>(rank, value);
  if (list.size() != rank) fail("{} has {} numbers, there are {} spatial axes", name, list.size(), rank);
  return list;
}

int64_t ceil_divide(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
int64_t floor_divide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// The same number of positions as a stride allows over the unpadded axis; the padding follows from it.
void pad_to_same(Window& window, size_t i, int64_t size, bool upper) {
  window.output[i] = ceil_divide(size, window.stride[i]);
  int64_t total = std::max<int64_t>(0, (window.output[i] - 1) * window.stride[i] + window.span(i) - size);
  window.begin[i] = upper ? total / 2 : total - total / 2;
  window.end[i] = total - window.begin[i];
}

/// Positions of a window on an axis with explicit padding. In ceil mode the last one may hang over the end, but must
/// start inside the input or the padding before it.
int64_t positions(const Window& window, size_t i, int64_t size, bool ceil_mode) {
  int64_t room = size + window.begin[i] + window.end[i] - window.span(i);
  int64_t count = (ceil_mode ? ceil_divide(room, window.stride[i]) : floor_divide(room, window.stride[i])) + 1;
  if (ceil_mode && (count - 1) * window.stride[i] >= size + window.begin[i]) --count;
  return count;
}

}  // namespace

WindowAttributes::WindowAttributes(const NodeView& node)
    : kernel(bounded(node, "kernel_shape", 1)),
      strides(bounded(node, "strides", 1)),
      dilations(bounded(node, "dilations", 1)),
      pads(bounded(node, "pads", 0)),
      auto_pad(auto_pad_of(node)),
      ceil_mode(node.integer("ceil_mode", 0) != 0) {}

int64_t Window::needed_end(size_t axis, int64_t size) const {
  return (output[axis] - 1) * stride[axis] + span(axis) - size - begin[axis];
}

Window window_over(const WindowAttributes& attributes, at::IntArrayRef kernel, at::IntArrayRef sizes) {
  size_t rank = sizes.size();
  if (kernel.size() != rank) fail("the kernel has {} axes, the input has {} spatial ones", kernel.size(), rank);
  Window window{.kernel = kernel.vec()};
  window.stride = or_default(attributes.strides, rank, 1, "strides");
  window.dilation = or_default(attributes.dilations, rank, 1, "dilations");
  bool explicit_pads = attributes.auto_pad == AutoPad::kNotSet;
  std::vector<int64_t> pads =
      explicit_pads ? or_default(attributes.pads, 2 * rank, 0, "pads") : std::vector<int64_t>(2 * rank);
  window.begin.assign(pads.begin(), pads.begin() + rank);
  window.end.assign(pads.begin() + rank, pads.end());
  window.output.resize(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (kernel[i] < 1) fail("the kernel has size {}", kernel[i]);
    times(kernel[i], window.dilation[i]);
    bool same = attributes.auto_pad == AutoPad::kSameUpper || attributes.auto_pad == AutoPad::kSameLower;
    if (same) pad_to_same(window, i, sizes[i], attributes.auto_pad == AutoPad::kSameUpper);
    if (!same) window.output[i] = positions(window, i, sizes[i], attributes.ceil_mode);
    if (window.output[i] < 1) fail("a window of {} does not fit an axis of {}", window.span(i), sizes[i]);
  }
  return window;
}

at::Tensor pad_spatial(const at::Tensor& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                       at::Scalar value) {
  std::vector<int64_t> pads;
  for (size_t i = begin.size(); i-- > 0;) pads.insert(pads.end(), {begin[i], end[i]});
  bool none = std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
  if (none) return x;
  at::Tensor y = at::constant_pad_nd(x, pads, value);
  bool channels_last = x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast) && !x.is_contiguous();
  return channels_last ? y.contiguous(at::MemoryFormat::ChannelsLast) : y;
}

}  // namespace netmend::ops
