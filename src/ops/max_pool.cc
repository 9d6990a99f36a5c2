#include "ops/max_pool.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "ops/arguments.h"
#include "ops/max_pool_loops.h"

namespace netmend::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Axes that the tensor lacks are added in front.
PoolShape pool_shape(const Window& window, const at::Tensor& x) {
  auto last = [](at::IntArrayRef list, int64_t missing) {
    std::array<int64_t, 3> result{missing, missing, missing};
    std::copy(list.begin(), list.end(), result.end() - list.size());
    return result;
  };
  return {last(x.sizes().slice(2), 1), last(window.output, 1),   last(window.kernel, 1),
          last(window.stride, 1),      last(window.dilation, 1), last(window.begin, 0)};
}

/// With fewer channels a vector would be mostly empty: planes are then copied and pooled row by row.
constexpr int64_t kFewestChannels = 8;

bool channels_last(const at::Tensor& x) {
  return x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast) && !x.is_contiguous();
}

bool has_few_channels(const at::Tensor& x) { return channels_last(x) && x.size(1) < kFewestChannels; }

at::MemoryFormat format_of(const at::Tensor& x) {
  return channels_last(x) ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

at::Tensor empty_result(const at::Tensor& x, const Window& window, at::TensorOptions options, at::MemoryFormat format) {
  std::vector<int64_t> shape = {x.size(0), x.size(1)};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  return at::empty(shape, options, format);
}

template <typename T>
void forward(const at::Tensor& x, const at::Tensor& y, const PoolShape& s) {
  const T* from = x.data_ptr<T>();
  T* to = y.data_ptr<T>();
  int64_t planes = x.size(0) * x.size(1);
  if (channels_last(x) && s.is_two_by_two())
    return PoolLoops<T>::two_by_two_channels(from, to, s, x.size(0), x.size(1));
  if (channels_last(x)) return PoolLoops<T>::by_channels(from, to, s, x.size(0), x.size(1));
  if (s.is_two_by_two() && s.in[2] == 2 * s.out[2]) {
    at::Tensor half = at::empty({s.out[1] * s.in[2] + kPoolChunk}, x.options());
    return PoolLoops<T>::two_by_two_even(from, to, s, planes, half.data_ptr<T>());
  }
  if (s.is_two_by_two()) return PoolLoops<T>::two_by_two(from, to, s, planes);
  at::Tensor row = at::empty({s.row_width()}, x.options());
  PoolLoops<T>::by_rows(from, to, s, planes, row.data_ptr<T>());
}

template <typename T>
void backward(const at::Tensor& x, const at::Tensor& y, const at::Tensor& g, const at::Tensor& gx, const PoolShape& s) {
  const T *from = x.data_ptr<T>(), *best = y.data_ptr<T>(), *gradient = g.data_ptr<T>();
  T* to = gx.data_ptr<T>();
  if (channels_last(x)) {
    at::Tensor left = at::empty({x.size(1)}, x.options());
    return PoolLoops<T>::by_channels_back(from, best, gradient, to, s, x.size(0), x.size(1), left.data_ptr<T>());
  }
  int64_t planes = x.size(0) * x.size(1);
  if (s.is_two_by_two()) return PoolLoops<T>::two_by_two_back(from, best, gradient, to, s, planes);
  at::Tensor left = at::empty({s.out[2]}, x.options());
  PoolLoops<T>::by_rows_back(from, best, gradient, to, s, planes, left.data_ptr<T>());
}

/// The gradient as LibTorch operators, for gradients of gradients.
at::Tensor backward_tracked(const at::Tensor& x, const at::Tensor& g, const Window& window) {
  at::Tensor where = max_pool_positions(x, window).flatten(2);
  at::Tensor kept = at::where(where >= 0, g.flatten(2), at::zeros({}, g.options()));
  int64_t plane = pool_shape(window, x).in_plane();
  at::Tensor flat = at::zeros({x.size(0), x.size(1), plane}, g.options());
  return flat.scatter_add(2, where.clamp_min(0), kept).reshape(x.sizes());
}

Window unpack(const std::vector<int64_t>& numbers) {
  size_t rank = numbers.size() / 6;
  auto part = [&](size_t i) {
    return std::vector<int64_t>(numbers.begin() + i * rank, numbers.begin() + (i + 1) * rank);
  };
  return {part(0), part(1), part(2), part(3), part(4), part(5)};
}

std::vector<int64_t> pack(const Window& window) {
  std::vector<int64_t> numbers;
  for (const auto* part :
       {&window.kernel, &window.stride, &window.dilation, &window.begin, &window.end, &window.output}) {
    numbers.insert(numbers.end(), part->begin(), part->end());
  }
  return numbers;
}

struct MaxPool : torch::autograd::Function<MaxPool> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, std::vector<int64_t> numbers) {
    at::Tensor x = input.contiguous(has_few_channels(input) ? at::MemoryFormat::Contiguous : format_of(input));
    at::Tensor y = max_pool(x, unpack(numbers));
    context->save_for_backward({x, y});
    context->saved_data["window"] = numbers;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &y = saved[1];
    Window window = unpack(context->saved_data["window"].toIntVector());
    if (at::GradMode::is_enabled()) return {backward_tracked(x, gradients[0], window), at::Tensor()};
    at::Tensor g = gradients[0].contiguous(format_of(x)), gx = at::zeros_like(x);
    if (x.numel() == 0) return {gx, at::Tensor()};
    PoolShape shape = pool_shape(window, x);
    if (x.scalar_type() == at::kFloat) ops::backward<float>(x, y, g, gx, shape);
    if (x.scalar_type() == at::kDouble) ops::backward<double>(x, y, g, gx, shape);
    return {gx, at::Tensor()};
  }
};

}  // namespace

bool suits_own_max_pool(const at::Tensor& x) {
  bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  return known && x.device().is_cpu() && x.layout() == at::kStrided && x.dim() >= 3 && x.dim() <= 5;
}

at::Tensor max_pool(const at::Tensor& input, const Window& window) {
  if (has_few_channels(input)) return max_pool(input.contiguous(), window).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor x = input.contiguous(format_of(input));
  PoolShape shape = pool_shape(window, x);
  at::Tensor y = empty_result(x, window, x.options(), format_of(x));
  if (x.numel() == 0) return y;
  if (x.scalar_type() == at::kFloat) forward<float>(x, y, shape);
  if (x.scalar_type() == at::kDouble) forward<double>(x, y, shape);
  return y;
}

at::Tensor max_pool_tracked(const at::Tensor& x, const Window& window) { return MaxPool::apply(x, pack(window)); }

at::Tensor max_pool_positions(const at::Tensor& input, const Window& window) {
  at::Tensor x = input.detach().contiguous();
  PoolShape shape = pool_shape(window, x);
  at::Tensor result = empty_result(x, window, x.options().dtype(at::kLong), at::MemoryFormat::Contiguous);
  int64_t* data = result.data_ptr<int64_t>();
  int64_t planes = x.size(0) * x.size(1);
  if (x.scalar_type() == at::kFloat) PoolLoops<float>::positions(x.data_ptr<float>(), data, shape, planes);
  if (x.scalar_type() == at::kDouble) PoolLoops<double>::positions(x.data_ptr<double>(), data, shape, planes);
  return result;
}

}  // namespace netmend::ops
