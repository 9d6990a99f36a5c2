// Convolutions in one to three dimensions, and which of their weights feed which unit.
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>

#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/window.h"

namespace netmend::ops::families {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct ConvForm {
  WindowAttributes window;
  int64_t groups;
  std::vector<int64_t> output_padding, output_shape;  // of the transposed one

  explicit ConvForm(const NodeView& node)
      : window(node),
        groups(node.integer("group", 1)),
        output_padding(node.integers("output_padding")),
        output_shape(node.integers("output_shape")) {
    node.require(groups > 0, "group is {}", groups);
    for (int64_t size : output_padding) node.require(size >= 0 && size < (1 << 30), "output_padding holds {}", size);
    for (int64_t size : output_shape) node.require(size > 0, "output_shape holds {}", size);
  }
};

at::IntArrayRef spatial(const at::Tensor& x) { return x.sizes().slice(2); }

/// Everything LibTorch's convolutions take for granted or answer with a division by zero.
void check_operands(const at::Tensor& x, const at::Tensor& w, const ConvForm& form, bool transposed) {
  if (x.dim() < 3 || x.dim() > 5) fail("the input has {} axes, expected 3 to 5", x.dim());
  if (w.dim() != x.dim()) fail("the weight has {} axes, the input has {}", w.dim(), x.dim());
  int64_t fed = transposed ? w.size(0) : times(w.size(1), form.groups);
  if (x.size(1) != fed) fail("the input has {} channels, the weight is for {}", x.size(1), fed);
  if (w.size(0) == 0 || w.size(1) == 0) fail("the weight is empty");
  if (w.size(0) % form.groups != 0) fail("{} filters cannot be cut into {} groups", w.size(0), form.groups);
  const auto& declared = form.window.kernel;
  if (!declared.empty() && at::IntArrayRef(declared) != spatial(w))
    fail("kernel_shape differs from the weight's shape");
}

/// A 2-d convolution of few channels whose input gradient does not go through oneDNN, which is ten times slower for it:
/// that gradient is most of the price of an attack or of relevance down to the pixels.
struct FewChannels : torch::autograd::Function<FewChannels> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w,
                            const c10::optional<at::Tensor>& bias, std::vector<int64_t> stride,
                            std::vector<int64_t> padding) {
    context->save_for_backward({x, w});
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    context->saved_data["bias"] = bias.has_value();
    return at::convolution(x, w, bias, stride, padding, {1, 1}, false, {0, 0}, 1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1], &g = gradients[0];
    auto stride = context->saved_data["stride"].toIntVector(), padding = context->saved_data["padding"].toIntVector();
    bool bias = context->saved_data["bias"].toBool(), again = at::GradMode::is_enabled();
    std::array<bool, 3> rest = {again, context->needs_input_grad(1), bias && context->needs_input_grad(2)};
    at::Tensor gx, gw, gb;
    if (rest[0] || rest[1] || rest[2]) {
      std::tie(gx, gw, gb) = at::convolution_backward(g, x, w, at::OptionalIntArrayRef({w.size(0)}), stride, padding,
                                                      {1, 1}, false, {0, 0}, 1, rest);
    }
    if (!again && context->needs_input_grad(0)) {
      gx = std::get<0>(at::_slow_conv2d_backward(g, x, w, spatial(w), stride, padding, {true, false, false}));
    }
    return {gx, gw, gb, at::Tensor(), at::Tensor()};
  }
};

/// The same on a GPU, where the weights' gradient is what is slow: of cuDNN's ways to compute it for a few channels the
/// one that gives the same bits each time takes as long as all else together twenty times over. As matrix products of
/// each input's windows it is fast and the same.
struct FewChannelsOnDevice : torch::autograd::Function<FewChannelsOnDevice> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w,
                            const c10::optional<at::Tensor>& bias, std::vector<int64_t> stride,
                            std::vector<int64_t> padding) {
    return FewChannels::forward(context, x, w, bias, std::move(stride), std::move(padding));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1], &g = gradients[0];
    auto stride = context->saved_data["stride"].toIntVector(), padding = context->saved_data["padding"].toIntVector();
    const bool bias = context->saved_data["bias"].toBool();
    at::Tensor gx, gw, gb;
    if (context->needs_input_grad(0))
      gx = std::get<0>(at::convolution_backward(g, x, w, at::OptionalIntArrayRef({w.size(0)}), stride, padding, {1, 1},
                                                false, {0, 0}, 1, {true, false, false}));
    if (context->needs_input_grad(1)) {
      // Inputs × positions × products; im2col itself goes input by input there.
      const at::Tensor windows = at::constant_pad_nd(x, {padding[1], padding[1], padding[0], padding[0]})
                                     .unfold(2, w.size(2), stride[0])
                                     .unfold(3, w.size(3), stride[1])
                                     .permute({0, 2, 3, 1, 4, 5})
                                     .reshape({x.size(0), g.size(2) * g.size(3), w[0].numel()});
      gw = at::bmm(g.flatten(2), windows).sum(0).view(w.sizes());
    }
    if (bias && context->needs_input_grad(2)) gb = g.sum({0, 2, 3});
    return {gx, gw, gb, at::Tensor(), at::Tensor()};
  }
};

bool suits_few_channels(const at::Tensor& x, const ConvForm& form, const Window& window) {
  bool plain = form.groups == 1 && window.dilation == std::vector<int64_t>{1, 1};
  return tracked(x) && x.dim() == 4 && x.size(1) <= 3 && x.device().is_cpu() && plain;
}

/// In training channels go innermost, where oneDNN's gradients are faster (6→16 channels by a third, 64→64 twice), and
/// stay so through the layers that follow. One or two channels gain nothing.
at::Tensor laid_out(const Call& call, const ConvForm& form) {
  const at::Tensor& x = call.in(0);
  bool gains = call.training() && x.dim() == 4 && x.size(1) >= 3 && form.groups == 1 && x.device().is_cpu();
  return gains ? x.contiguous(at::MemoryFormat::ChannelsLast) : x;
}

at::Tensor convolve(const Call& call, const ConvForm& form) {
  const at::Tensor x = laid_out(call, form), &w = call.in(1);
  check_operands(x, w, form, false);
  Window window = window_over(form.window, spatial(w), spatial(x));
  c10::optional<at::Tensor> bias;
  if (call.has(2)) bias = call.in(2);
  at::Tensor padded = window.symmetric() ? x : pad_spatial(x, window.begin, window.end, 0);
  std::vector<int64_t> zero(window.rank(), 0), padding = window.symmetric() ? window.begin : zero;
  constexpr int64_t kFewProducts = 160;
  if (tracked(w) && padded.is_cuda() && padded.dim() == 4 && w[0].numel() <= kFewProducts && form.groups == 1 &&
      window.dilation == std::vector<int64_t>{1, 1})
    return FewChannelsOnDevice::apply(padded, w, bias, window.stride, padding);
  if (suits_few_channels(padded, form, window)) return FewChannels::apply(padded, w, bias, window.stride, padding);
  return at::convolution(padded, w, bias, window.stride, padding, window.dilation, false, zero, form.groups);
}

struct TransposedWindow {
  std::vector<int64_t> stride, dilation, output_padding, begin, end;
};

std::vector<int64_t> sized(const std::vector<int64_t>& list, size_t size, int64_t value, const char* name) {
  if (list.empty()) return std::vector<int64_t>(size, value);
  if (list.size() != size) fail("{} has {} numbers, expected {}", name, list.size(), size);
  return list;
}

/// How much of the full result to cut off: given, or what makes the output as large as asked.
TransposedWindow transposed_window(const ConvForm& form, at::IntArrayRef kernel, at::IntArrayRef sizes) {
  size_t rank = sizes.size();
  const WindowAttributes& a = form.window;
  TransposedWindow t{sized(a.strides, rank, 1, "strides"), sized(a.dilations, rank, 1, "dilations"),
                     sized(form.output_padding, rank, 0, "output_padding")};
  std::vector<int64_t> pads = sized(a.pads, 2 * rank, 0, "pads"), shape = form.output_shape;
  t.begin.assign(pads.begin(), pads.begin() + rank), t.end.assign(pads.begin() + rank, pads.end());
  if (a.auto_pad == AutoPad::kValid) t.begin.assign(rank, 0), t.end.assign(rank, 0);
  bool same = a.auto_pad == AutoPad::kSameUpper || a.auto_pad == AutoPad::kSameLower;
  if (shape.size() == rank + 2) shape.erase(shape.begin(), shape.begin() + 2);  // some exporters name all axes
  if (shape.empty() && !same) return t;
  if (!shape.empty()) shape = sized(shape, rank, 0, "output_shape");
  for (size_t i = 0; i < rank; ++i) {
    int64_t wanted = shape.empty() ? times(sizes[i], t.stride[i]) : shape[i];
    int64_t reach = plus(times(kernel[i] - 1, t.dilation[i]), 1);
    int64_t full = plus(plus(times(t.stride[i], sizes[i] - 1), t.output_padding[i]), reach);
    int64_t total = plus(full, -wanted), half = total / 2;
    t.begin[i] = total < 0 ? 0 : a.auto_pad == AutoPad::kSameUpper ? half : total - half;  // more goes to the end
    t.end[i] = total - t.begin[i];
  }
  return t;
}

at::Tensor convolve_transposed(const Call& call, const ConvForm& form) {
  const at::Tensor &x = call.in(0), &w = call.in(1);
  check_operands(x, w, form, true);
  TransposedWindow t = transposed_window(form, spatial(w), spatial(x));
  at::Tensor bias = call.has(2) ? call.in(2) : at::Tensor();
  bool direct = t.begin == t.end && *std::min_element(t.begin.begin(), t.begin.end()) >= 0;
  std::vector<int64_t> padding = direct ? t.begin : std::vector<int64_t>(t.begin.size(), 0);
  at::Tensor y = at::convolution(x, w, direct ? bias : at::Tensor(), t.stride, padding, t.dilation, true,
                                 t.output_padding, form.groups);
  if (direct) return y;
  for (int64_t& pad : t.begin) pad = -pad;
  for (int64_t& pad : t.end) pad = -pad;
  for (size_t i = 0; i < t.begin.size(); ++i) {
    if (plus(y.size(i + 2), plus(t.begin[i], t.end[i])) < 1) fail("pads leave nothing of axis {}", i + 2);
  }
  y = pad_spatial(y, t.begin, t.end, 0);
  if (!bias.defined()) return y;
  std::vector<int64_t> shape(y.dim(), 1);
  shape[1] = bias.numel();
  return y + bias.reshape(shape);
}

}  // namespace

Kernel conv(const NodeView& node) {
  ConvForm form(node);
  return [=](Call& call) { call.set(0, convolve(call, form)); };
}

std::optional<Units> conv_units(const NodeView& node) {
  at::Tensor weight = node.constant(1);
  if (!weight.defined() || weight.dim() < 3) return std::nullopt;
  return Units{.count = weight.size(0), .bias_slot = node.has_input(2) ? 2 : -1};
}

Kernel conv_transpose(const NodeView& node) {
  ConvForm form(node);
  return [=](Call& call) { call.set(0, convolve_transposed(call, form)); };
}

/// With groups the filters of a group share an axis of the weight, so that no axis counts all units.
std::optional<Units> conv_transpose_units(const NodeView& node) {
  at::Tensor weight = node.constant(1);
  if (!weight.defined() || weight.dim() < 3 || node.integer("group", 1) != 1) return std::nullopt;
  return Units{.count = weight.size(1), .weight_axis = 1, .bias_slot = node.has_input(2) ? 2 : -1};
}

// clang-format off
std::span<const Op> conv_rows() {
  static constexpr Op kRows[] = {
      {.name = "Conv", .prepare = conv, .kind = Kind::kLinear, .units = conv_units},
      {.name = "ConvTranspose", .prepare = conv_transpose, .kind = Kind::kLinear, .units = conv_transpose_units},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
