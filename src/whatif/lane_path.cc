#include "whatif/lane_path.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ops/op.h"
#include "ops/window.h"
#include "whatif/row_loops.h"

namespace netmend::whatif {
namespace {

using model::Node;
using model::ValueId;
using ops::kInputs;

constexpr int64_t kMostWindow = 127;  ///< places within a pooling window are told in a byte

bool plain(const ops::Window& window) {
  for (size_t axis = 0; axis < 2; ++axis)
    if (window.dilation[axis] != 1 || window.begin[axis] < 0 || window.end[axis] < 0) return false;
  return true;
}

/// The window of a convolution or a pooling over an image; none where it is out of the ordinary.
std::optional<ops::Window> window_of(const model::Graph& graph, const Node& node, at::IntArrayRef kernel,
                                     const ops::Plane& in) {
  try {
    ops::Window window =
        ops::window_over(ops::WindowAttributes(ops::NodeView(graph, node)), kernel, {in.height, in.width});
    return plain(window) ? std::optional(window) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

int64_t groups_of(int64_t inputs) { return (inputs + kInputs - 1) / kInputs; }

}  // namespace

std::unique_ptr<LanePath> LanePath::find(const model::Graph& graph, ValueId output, const at::Tensor& kernels,
                                         const at::Tensor& seat, ValueId answers) {
  if (ops::widest_vectors() == ops::Vectors::kNone || kernels.dim() != 4 || seat.dim() != 4) return nullptr;
  if (kernels.scalar_type() != at::kFloat || seat.scalar_type() != at::kFloat) return nullptr;
  const Node& conv = graph.nodes[size_t(model::producers(graph)[size_t(output)])];
  auto path = std::make_unique<LanePath>();
  path->kernels_ = kernels.contiguous();
  path->in_.channels = 1, path->in_.height = seat.size(2), path->in_.width = seat.size(3);
  const auto window = window_of(graph, conv, kernels.sizes().slice(2), path->in_);
  if (!window || window->stride[1] > 2) return nullptr;
  path->stride_y_ = window->stride[0], path->stride_x_ = window->stride[1];
  path->made_.channels = kernels.size(0), path->made_.height = window->output[0], path->made_.width = window->output[1];
  path->in_.top = window->begin[0], path->in_.left = window->begin[1];
  path->in_.bottom = std::max<int64_t>(0, window->needed_end(0, path->in_.height));
  path->in_.right = std::max<int64_t>(0, window->needed_end(1, path->in_.width));
  path->pooled_ = path->made_;

  const std::vector<std::vector<int>> used_by = model::consumers(graph);
  bool pooled = false;
  ValueId at = output;
  while (at != answers && !path->flat_ && used_by[size_t(at)].size() == 1 &&
         !std::count(graph.outputs.begin(), graph.outputs.end(), at)) {
    const Node& next = graph.nodes[size_t(used_by[size_t(at)][0])];
    if (!next.domain.empty() || next.outputs.size() != 1 || next.inputs.empty() || next.inputs[0] != at) break;
    const ops::NodeView view(graph, next);
    if (next.op == "Relu") {
      path->relu_ = true;  // before the largest is taken or behind: the same
    } else if (next.op == "MaxPool" && !pooled) {
      const std::vector<int64_t> kernel = view.integers("kernel_shape");
      if (kernel.size() != 2 || kernel[0] * kernel[1] > kMostWindow) break;
      const auto over = window_of(graph, next, kernel, path->made_);
      if (!over) break;
      path->pool_ = {kernel[0], kernel[1], over->stride[0], over->stride[1], over->begin[0], over->begin[1]};
      path->pooled_.height = over->output[0], path->pooled_.width = over->output[1];
      pooled = true;
    } else if (next.op == "Flatten" && view.integer("axis", 1) == 1) {
      path->flat_ = true;
    } else {
      break;
    }
    at = next.outputs[0];
  }
  path->end_ = at;
  return at == output ? nullptr : std::move(path);
}

at::Tensor LanePath::in_lanes(const at::Tensor& output) const {
  const at::Tensor z = output.contiguous(), lanes = at::empty({groups_of(z.size(0)), made_.all()}, at::kFloat);
  const int64_t width = z[0].numel();
  for (int64_t group = 0; group < lanes.size(0); ++group)
    ops::rows_to_lanes(z.data_ptr<float>() + group * kInputs * width, width,
                       std::min(kInputs, z.size(0) - group * kInputs), lanes.data_ptr<float>() + group * made_.all(),
                       made_);
  return lanes;
}

at::Tensor LanePath::run(const at::Tensor& lanes, const at::Tensor& delta, std::span<const int64_t> units,
                         std::vector<float>& largest) const {
  const int64_t inputs = delta.size(0), height = kernels_.size(2), width = kernels_.size(3);
  ops::Plane in = in_;
  in.channels = int64_t(units.size());
  std::vector<int64_t> weights, taps;
  for (int64_t u = 0; u < in.channels; ++u)
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; ++j) {
        weights.push_back((units[size_t(u)] * height + i) * width + j);
        taps.push_back(u * in.channel() + i * in.line() + j * kInputs);
      }
  const at::Tensor difference = delta.contiguous(), x = at::zeros({in.all()}, at::kFloat),
                   z = at::empty({made_.all()}, at::kFloat), y = at::empty({pooled_.all()}, at::kFloat);
  const int64_t numbers = difference[0].numel(), results = pooled_.channels * pooled_.height * pooled_.width;
  at::Tensor out = at::empty({inputs, results}, at::kFloat);
  largest.resize(size_t(groups_of(inputs) * kInputs));
  ops::WindowSums s;
  s.a = kernels_.data_ptr<float>(), s.a_row = kernels_.size(1) * height * width, s.a_at = weights.data();
  s.b_at = taps.data(), s.b_step = stride_x_ * kInputs, s.terms = int64_t(taps.size());
  s.c_row = made_.channel(), s.rows = made_.channels, s.columns = made_.width;
  for (int64_t group = 0; group < groups_of(inputs); ++group) {
    const int64_t count = std::min(kInputs, inputs - group * kInputs);
    ops::rows_to_lanes(difference.data_ptr<float>() + group * kInputs * numbers, numbers, count, x.data_ptr<float>(),
                       in);
    const float* before = lanes.data_ptr<float>() + group * made_.all();
    for (int64_t line = 0; line < made_.height; ++line) {
      s.b = x.data_ptr<float>() + in.at(line * stride_y_ - in.top, -in.left);
      s.c = z.data_ptr<float>() + made_.at(line, 0);
      s.from = before + made_.at(line, 0);
      ops::window_sums(ops::widest_vectors(), s);
    }
    largest_of_lanes(z.data_ptr<float>(), made_.all() / kInputs, largest.data() + group * kInputs);
    ops::pool_lanes(z.data_ptr<float>(), made_, pool_, relu_, y.data_ptr<float>(), pooled_, nullptr);
    ops::lanes_to_rows(y.data_ptr<float>(), pooled_, count, out.data_ptr<float>() + group * kInputs * results, results);
  }
  return flat_ ? out : out.view({inputs, pooled_.channels, pooled_.height, pooled_.width});
}

}  // namespace netmend::whatif
