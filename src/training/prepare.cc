#include "training/prepare.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "executor/executor.h"

namespace netmend::training {
void pool_before_relu(model::Graph& graph) {
  std::vector<int> made_by = model::producers(graph);
  std::vector<std::vector<int>> used_by = model::consumers(graph);
  for (model::Node& pool : graph.nodes) {
    if (pool.op != "MaxPool" || pool.outputs.size() != 1) continue;
    model::ValueId between = pool.inputs[0];
    int maker = made_by[size_t(between)];
    bool output = std::find(graph.outputs.begin(), graph.outputs.end(), between) != graph.outputs.end();
    if (maker < 0 || graph.nodes[size_t(maker)].op != "Relu" || used_by[size_t(between)].size() != 1 || output)
      continue;
    model::Node& relu = graph.nodes[size_t(maker)];
    std::swap(relu.op, pool.op);
    std::swap(relu.name, pool.name);
    std::swap(relu.opset, pool.opset);
    std::swap(relu.attributes, pool.attributes);
    graph.values[size_t(between)].shape.reset();
  }
}

Work measure_work(const model::Graph& graph, model::ValueId wanted, const std::vector<at::Tensor>& inputs) {
  executor::Request request;
  request.wanted = {wanted};
  request.mode = executor::Mode::kPlain;
  double products = 0;
  executor::RunOptions options;
  options.trace = [&](int node, std::span<const at::Tensor> in, std::span<const at::Tensor> out) {
    const std::string& op = graph.nodes[size_t(node)].op;
    if (op != "Conv" && op != "Gemm" && op != "MatMul") return;
    if (in.size() < 2 || !in[1].defined() || in[1].numel() == 0 || out[0].dim() == 0) return;
    int64_t units = op == "Conv" ? in[1].size(0) : std::max<int64_t>(1, out[0].size(-1));
    products += double(out[0].numel()) * double(in[1].numel()) / double(units);
  };
  at::NoGradGuard no_grad;
  executor::Executor(graph, request).run(inputs, options);
  return {products / double(inputs.at(0).size(0))};
}

}  // namespace netmend::training
