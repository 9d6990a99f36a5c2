#include "training/lockstep_plan.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "ops/op.h"
#include "ops/window.h"

namespace netmend::training {
namespace {

using model::Node;
using model::ValueId;

constexpr int64_t kMostWindow = 127;  ///< places within a pooling window are told in a byte

struct Refused {
  std::string reason;
};

class Planner {
 public:
  Planner(const model::Graph& graph, ValueId wanted, at::IntArrayRef shape)
      : graph_(graph), wanted_(wanted), used_by_(model::consumers(graph)) {
    if (graph.inputs.size() != 1) throw Refused{"it has several inputs"};
    if (shape.size() != 1 && shape.size() != 3) throw Refused{"its input is neither a row of numbers nor an image"};
    channels_ = shape[0];
    if (shape.size() == 3) size_ = {shape[1], shape[2]};
    rows_ = shape.size() == 1;
  }

  std::vector<LockstepBlock> run() {
    ValueId at = graph_.inputs[0];
    while (at != wanted_) at = take(node_behind(at), at);
    if (blocks_.empty()) throw Refused{"it has no layer with weights"};
    if (!rows_) throw Refused{"its output is no row of numbers"};
    return std::move(blocks_);
  }

 private:
  [[noreturn]] void refuse(const Node& node, const char* reason) const {
    throw Refused{fmt::format("{} {}: {}", node.op, node.name, reason)};
  }

  const Node& node_behind(ValueId value) const {
    const std::vector<int>& users = used_by_[size_t(value)];
    if (users.size() != 1)
      throw Refused{fmt::format("{} is read by {} nodes", graph_.values[size_t(value)].name, users.size())};
    return graph_.nodes[size_t(users[0])];
  }

  ValueId take(const Node& node, ValueId from) {
    if (node.inputs.empty() || node.inputs[0] != from || !node.domain.empty()) refuse(node, "not in a chain");
    if (node.op == "Conv")
      conv(node);
    else if (node.op == "Gemm")
      gemm(node);
    else if (node.op == "MatMul")
      return mat_mul(node);
    else if (node.op == "Relu")
      relu(node);
    else if (node.op == "MaxPool")
      pool(node);
    else if (node.op == "Flatten" || node.op == "Reshape")
      flatten(node);
    else if (node.op != "Identity")
      refuse(node, "not among the operators that are run in lockstep");
    return node.outputs.at(0);
  }

  at::Tensor weight_of(const Node& node, size_t input, int64_t axes) const {
    const at::Tensor value = node.inputs.size() > input ? graph_.constant(node.inputs[input]) : at::Tensor();
    if (!value.defined() || value.scalar_type() != at::kFloat || value.dim() != axes)
      refuse(node, "its weights are no float32 constants of the file");
    if (used_by_[size_t(node.inputs[input])].size() != 1) refuse(node, "its weights are shared");
    return value;
  }

  void take_bias(const Node& node, size_t input, LockstepBlock& block) const {
    if (node.inputs.size() <= input || node.inputs[input] == model::kAbsent) return;
    if (weight_of(node, input, 1).numel() != block.units) refuse(node, "one bias for several units");
    block.bias = node.inputs[input];
  }

  void add(LockstepBlock block) {
    block.out = block.made;
    channels_ = block.units, size_ = block.out;
    pooled_ = false;
    blocks_.push_back(std::move(block));
  }

  void conv(const Node& node) {
    const ops::NodeView view(graph_, node);
    const at::Tensor weight = weight_of(node, 1, 4);
    if (rows_ || view.integer("group", 1) != 1 || weight.size(1) != channels_)
      refuse(node, "only plain convolutions of images");
    const ops::Window window =
        ops::window_over(ops::WindowAttributes(view), weight.sizes().slice(2), {size_.y, size_.x});
    for (size_t axis = 0; axis < 2; ++axis)
      if (window.dilation[axis] != 1 || window.begin[axis] < 0 || window.end[axis] < 0)
        refuse(node, "dilated or cropped windows");
    LockstepBlock block;
    block.name = node.name, block.weight = node.inputs[1], block.dense = false;
    block.channels = channels_, block.units = weight.size(0), block.size = size_;
    block.kernel = {weight.size(2), weight.size(3)};
    block.stride = {window.stride[0], window.stride[1]};
    block.begin = {window.begin[0], window.begin[1]}, block.end = {window.end[0], window.end[1]};
    block.made = {window.output[0], window.output[1]};
    take_bias(node, 2, block);
    add(std::move(block));
  }

  void dense(const Node& node, bool inputs_first) {
    const at::Tensor weight = weight_of(node, 1, 2);
    if (!rows_ || weight.size(inputs_first ? 0 : 1) != channels_) refuse(node, "only products with rows of numbers");
    LockstepBlock block;
    block.name = node.name, block.weight = node.inputs[1], block.inputs_first = inputs_first;
    block.channels = channels_, block.units = weight.size(inputs_first ? 1 : 0);
    add(std::move(block));
  }

  void gemm(const Node& node) {
    const ops::NodeView view(graph_, node);
    if (view.integer("transA", 0) != 0 || view.real("alpha", 1) != 1 || view.real("beta", 1) != 1)
      refuse(node, "transposed or scaled operands");
    dense(node, view.integer("transB", 0) == 0);
    take_bias(node, 2, blocks_.back());
  }

  ValueId mat_mul(const Node& node) {
    dense(node, true);
    const ValueId product = node.outputs.at(0);
    if (product == wanted_) return product;
    const Node& next = node_behind(product);
    if (next.op != "Add") return product;
    take_bias(next, next.inputs[0] == product ? 1 : 0, blocks_.back());
    return next.outputs.at(0);
  }

  void relu(const Node& node) {
    if (blocks_.empty()) refuse(node, "stands before every layer");
    blocks_.back().relu = true;
  }

  void pool(const Node& node) {
    const ops::NodeView view(graph_, node);
    if (blocks_.empty() || blocks_.back().dense || pooled_ || node.outputs.size() != 1)
      refuse(node, "only behind a convolution");
    const std::vector<int64_t> kernel = view.integers("kernel_shape");
    if (kernel.size() != 2 || view.integer("ceil_mode", 0) != 0) refuse(node, "only images, rounded down");
    const ops::Window window = ops::window_over(ops::WindowAttributes(view), kernel, {size_.y, size_.x});
    for (size_t axis = 0; axis < 2; ++axis)
      if (window.dilation[axis] != 1 || window.begin[axis] != 0 || window.end[axis] != 0 ||
          window.stride[axis] < window.kernel[axis])
        refuse(node, "its windows overlap or are padded");
    LockstepBlock& block = blocks_.back();
    block.pool = {kernel[0], kernel[1]}, block.pool_stride = {window.stride[0], window.stride[1]};
    block.out = {window.output[0], window.output[1]};
    if (block.pool.area() > kMostWindow) refuse(node, "its windows are too large");
    size_ = block.out, pooled_ = true;
  }

  /// Everything behind the axis of inputs becomes one row.
  void flatten(const Node& node) {
    const ops::NodeView view(graph_, node);
    if (node.op == "Flatten" && view.integer("axis", 1) != 1) refuse(node, "keeps axes");
    if (node.op == "Reshape") {
      const at::Tensor shape = node.inputs.size() > 1 ? graph_.constant(node.inputs[1]) : at::Tensor();
      const int64_t all = channels_ * size_.area();
      if (!shape.defined() || shape.numel() != 2 || shape.scalar_type() != at::kLong ||
          (shape[1].item<int64_t>() != -1 && shape[1].item<int64_t>() != all) || shape[0].item<int64_t>() > 1)
        refuse(node, "not to one row for each input");
    }
    channels_ *= size_.area(), size_ = {}, rows_ = true;
  }

  const model::Graph& graph_;
  ValueId wanted_;
  std::vector<std::vector<int>> used_by_;
  std::vector<LockstepBlock> blocks_;
  int64_t channels_ = 0;
  Sides size_;
  bool rows_ = false, pooled_ = false;
};

}  // namespace

LockstepPlan plan_lockstep(const model::Graph& graph, ValueId wanted, at::IntArrayRef shape) {
  try {
    return {Planner(graph, wanted, shape).run(), ""};
  } catch (const Refused& refused) {
    return {{}, refused.reason};
  }
}

}  // namespace netmend::training
