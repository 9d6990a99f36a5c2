#include "executor/cost.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "executor/executor.h"

namespace netmend::executor {
namespace {

constexpr double kWriting = 8;  ///< multiply-adds in the time that a value is written and read again

double product_of(const std::string& op, std::span<const at::Tensor> in, const at::Tensor& out) {
  auto at_least = [&](size_t count) { return in.size() >= count && in[0].defined() && in[1].defined(); };
  if (op == "Conv" || op == "ConvInteger" || op == "QLinearConv") {
    const at::Tensor& weight = op == "QLinearConv" && in.size() > 3 ? in[3] : in[at_least(2) ? 1 : 0];
    return double(out.numel()) * double(weight.numel()) / double(std::max<int64_t>(1, weight.size(0)));
  }
  if (op == "ConvTranspose" && at_least(2))
    return double(in[0].numel()) * double(in[1].numel()) / double(std::max<int64_t>(1, in[1].size(0)));
  if ((op == "Gemm" || op == "MatMul" || op == "MatMulInteger" || op == "Einsum") && at_least(2) && in[0].dim() > 0)
    return double(out.numel()) * double(in[0].size(-1));
  if ((op == "LSTM" || op == "GRU" || op == "RNN") && in.size() >= 3 && in[0].dim() == 3)
    return double(in[0].size(0) * in[0].size(1)) * double(in[1].numel() + in[2].numel());
  return 0;
}

}  // namespace

double multiply_adds(const std::string& op, std::span<const at::Tensor> in, std::span<const at::Tensor> out) {
  return !out.empty() && out[0].defined() ? product_of(op, in, out[0]) : 0;
}

double multiply_adds(const model::Graph& graph, std::span<const at::Tensor> inputs,
                     const std::vector<model::ValueId>& wanted, const std::vector<model::ValueId>& given) {
  Request request;
  request.given = given;
  request.wanted = wanted;
  request.mode = Mode::kPlain;
  Executor executor(graph, request);
  double sum = 0;
  RunOptions run;
  run.trace = [&](int node, std::span<const at::Tensor> in, std::span<const at::Tensor> out) {
    for (const at::Tensor& value : out)
      if (value.defined()) sum += kWriting * double(value.numel());
    sum += multiply_adds(graph.nodes[size_t(node)].op, in, out);
  };
  at::NoGradGuard no_grad;
  executor.run(inputs, run);
  return sum;
}

}  // namespace netmend::executor
