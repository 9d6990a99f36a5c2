#include "executor/batching.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <numeric>

#include "base/text.h"
#include "executor/executor.h"
#include "executor/optimise.h"

namespace netmend::executor {
namespace {

using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;

constexpr double kTolerance = 1e-5;
constexpr double kRounding = 1e-2;  ///< what differs less may be rounding that a recurrent network has amplified
constexpr int64_t kLargestBatch = 65536;
using Tensors = std::vector<at::Tensor>;

/// The size of axis 0 that all inputs declare: 0 symbolic, -1 when they disagree or have no axes.
int64_t declared_batch(const Graph& graph) {
  int64_t batch = -2;
  for (ValueId id : graph.inputs) {
    const auto& shape = graph.values[size_t(id)].shape;
    if (shape && shape->empty()) return -1;
    int64_t size = !shape || (*shape)[0].size < 0 ? 0 : (*shape)[0].size;
    if (batch == -2) batch = size;
    if (batch != size) return -1;
  }
  return batch == -2 ? -1 : batch;
}

ValueId add_constant(Graph& graph, const std::string& name, const at::Tensor& value) {
  ValueId id = graph.add_value(name, model::Element::kInt64);
  graph.constants[id] = {value, model::Element::kInt64, {}, false};
  return id;
}

/// A constant target shape that begins with the batch of one lets that axis follow the input.
void free_reshape(Graph& graph, Node& node) {
  at::Tensor target = node.inputs.size() > 1 ? graph.constant(node.inputs[1]) : at::Tensor();
  if (!target.defined() || target.scalar_type() != at::kLong || target.numel() < 2) return;
  at::Tensor freed = target.clone();
  auto* sizes = freed.data_ptr<int64_t>();
  if (sizes[0] != 1) return;
  bool has_free = (freed == -1).any().item<bool>();
  sizes[0] = has_free ? 0 : -1;
  node.inputs[1] = add_constant(graph, node.name + "/any_batch", freed);
  if (has_free) node.attributes.erase("allowzero");
}

/// A constant that is joined to every input (a class token) is repeated for each of them.
void repeat_in_concat(Graph& graph, size_t at, std::vector<Node>& out) {
  Node node = graph.nodes[at];
  const auto axis = node.attributes.find("axis");
  const int64_t* along = axis == node.attributes.end() ? nullptr : std::get_if<int64_t>(&axis->second);
  ValueId follows = kAbsent;
  for (ValueId id : node.inputs)
    if (!graph.is_constant(id)) follows = id;
  if (along && *along != 0 && follows != kAbsent) {
    for (ValueId& id : node.inputs) {
      at::Tensor value = graph.constant(id);
      if (!value.defined() || value.dim() < 2 || value.size(0) != 1) continue;
      std::string base = node.name + "/repeat" + std::to_string(id);
      at::Tensor rest = at::ones({value.dim() - 1}, at::kLong);
      Node shape{base + "/shape", "Shape", "", 15, {follows}, {graph.add_value(base + "/shape")}, {}};
      shape.attributes = {{"start", int64_t(0)}, {"end", int64_t(1)}};
      Node sizes{base + "/sizes",
                 "Concat",
                 "",
                 13,
                 {shape.outputs[0], add_constant(graph, base + "/rest", rest)},
                 {graph.add_value(base + "/sizes")},
                 {{"axis", int64_t(0)}}};
      Node expand{base, "Expand", "", 13, {id, sizes.outputs[0]}, {graph.add_value(base)}, {}};
      id = expand.outputs[0];
      out.insert(out.end(), {shape, sizes, expand});
    }
  }
  out.push_back(node);
}

Graph generalised(Graph graph) {
  std::vector<Node> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op == "Reshape") free_reshape(graph, graph.nodes[n]);
    if (graph.nodes[n].op == "Concat")
      repeat_in_concat(graph, n, nodes);
    else
      nodes.push_back(graph.nodes[n]);
  }
  graph.nodes = std::move(nodes);
  return graph;
}

Tensors pick(std::span<const at::Tensor> inputs, const std::vector<int64_t>& rows) {
  Tensors out;
  at::Tensor index = at::tensor(rows, at::kLong);
  for (const at::Tensor& input : inputs) out.push_back(input.index_select(0, index));
  return out;
}

/// Largest difference between a row computed in a batch and alone, relative to the largest value of that row.
double row_difference(const at::Tensor& batched, int64_t row, const at::Tensor& alone) {
  at::Tensor a = batched.select(0, row).to(at::kDouble), b = alone.select(0, 0).to(at::kDouble);
  if (a.sizes() != b.sizes()) return INFINITY;
  if (a.numel() == 0) return 0;
  at::Tensor apart = (a - b).abs();
  apart = apart.masked_fill(at::isnan(a) & at::isnan(b), 0).masked_fill(a == b, 0);
  double size = at::nan_to_num(b, 0, 0, 0).abs().max().item<double>();
  double worst = apart.max().item<double>();
  return std::isnan(worst) ? INFINITY : worst / std::max(size, 1e-12);
}

/// Runs the rows together, in the order given, and compares with what each gave alone.
double batch_difference(const Executor& executor, std::span<const at::Tensor> inputs, const std::vector<int64_t>& order,
                        const std::vector<Tensors>& alone) {
  Tensors batched = executor.run(pick(inputs, order));
  double worst = 0;
  for (size_t w = 0; w < batched.size(); ++w) {
    if (batched[w].dim() == 0 || batched[w].size(0) != int64_t(order.size())) return INFINITY;
    for (size_t row = 0; row < order.size(); ++row) {
      const at::Tensor& single = alone[size_t(order[row])][w];
      if (single.dim() == 0 || single.size(0) != 1) return INFINITY;
      worst = std::max(worst, row_difference(batched[w], int64_t(row), single));
    }
  }
  return worst;
}

/// Whether any row changes when all others are replaced, in its place of a batch of the same size: the same kernels
/// then compute it, so that rounding is the same too.
bool others_matter(const Executor& executor, std::span<const at::Tensor> inputs, int64_t count,
                   const std::vector<ValueId>& wanted) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const Tensors usual = executor.run(pick(inputs, order));
  for (int64_t row = 0; row < count; ++row) {
    std::vector<int64_t> replaced(static_cast<size_t>(count), (row + 1) % count);
    replaced[size_t(row)] = row;
    const Tensors other = executor.run(pick(inputs, replaced));
    for (size_t w = 0; w < wanted.size(); ++w)
      if (row_difference(other[w], row, usual[w].narrow(0, row, 1)) > kTolerance) return true;
  }
  return false;
}

/// A network that fixes its batch at `size` gives as many rows of outputs.
bool keeps_batch(const Graph& graph, std::span<const at::Tensor> inputs, const std::vector<ValueId>& wanted,
                 int64_t size) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < size && !inputs.empty() && inputs[0].size(0) > 0; ++i) rows.push_back(i % inputs[0].size(0));
  Request request;
  request.wanted = wanted;
  at::NoGradGuard no_grad;
  for (const at::Tensor& out : Executor(graph, request).run(pick(inputs, rows)))
    if (out.dim() == 0 || out.size(0) != size) return false;
  return true;
}

Batching one_at_a_time(const Graph& graph, const std::string& reason) {
  return {Batching::kOne, 1, fmt::format("inputs run one at a time: {}", reason), graph};
}

}  // namespace

Batching find_batching(const Graph& graph, std::span<const at::Tensor> inputs, const std::vector<ValueId>& wanted) {
  int64_t declared = declared_batch(graph);
  if (declared < 0) return one_at_a_time(graph, "the model's inputs do not share a batch axis");
  if (declared > kLargestBatch)
    fail("the file fixes the batch at {}, which is more than the {} that netmend runs at once", declared,
         kLargestBatch);
  if (declared > 1 && !keeps_batch(graph, inputs, wanted, declared))
    throw Unsupported(
        fmt::format("axis 0 of the inputs has the size {} in the file, and the outputs do not keep it: the batch must "
                    "be the first axis",
                    declared));
  if (declared > 1)
    return {Batching::kFixed, declared,
            fmt::format("the file fixes the batch at {}: inputs run in groups of that size", declared), graph};
  at::NoGradGuard no_grad;
  Request request;
  request.wanted = wanted;
  request.mode = Mode::kPlain;
  Executor original(graph, request);
  int64_t count = inputs.empty() ? 0 : inputs[0].size(0);
  std::vector<Tensors> alone;
  std::vector<int64_t> order, reversed;
  for (int64_t row = 0; row < count; ++row) {
    alone.push_back(original.run(pick(inputs, {row})));
    order.push_back(row);
    reversed.insert(reversed.begin(), row);
  }
  if (count < 2) return one_at_a_time(graph, "there are too few inputs to see whether they influence each other");

  Graph any = graph;
  if (declared == 1) {
    fold_constants(any, original.request());  // a shape or a token may be made of constants
    any = generalised(std::move(any));
  }
  std::string fixed = declared == 1 ? "the file fixes the batch at 1 and " : "";
  double worst;
  bool rounding = false;
  try {
    Executor together(any, request);
    worst =
        std::max(batch_difference(together, inputs, order, alone), batch_difference(together, inputs, reversed, alone));
    rounding = worst > kTolerance && worst <= kRounding && !others_matter(together, inputs, count, wanted);
  } catch (const InputError& error) {
    return one_at_a_time(graph, fixed + "it does not run with more (" + error.what() + ")");
  }
  if (std::isinf(worst)) return one_at_a_time(graph, fixed + "its outputs do not keep the batch axis");
  if (worst > kTolerance && !rounding)
    return one_at_a_time(graph,
                         fmt::format("{}in a batch inputs change each other's outputs (by {:.1e})", fixed, worst));
  std::string note;
  if (rounding)
    note = fmt::format(
        "{}rounding: alone and in a batch an input's outputs differ by up to {:.0e} of their size; no input changes "
        "another's",
        declared == 1 ? "batch fixed at 1 in the file, generalised to any size; " : "", worst);
  else if (declared == 1)
    note = fmt::format(
        "batch fixed at 1 in the file, generalised to any size, outputs equal on {} inputs (max diff {:.0e})", count,
        worst);
  return {Batching::kAny, 0, note, any};
}

}  // namespace netmend::executor
