// The one table of operators, sorted by name; and what is refused by name because it is not in it.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "ops/families.h"

namespace netmend::ops {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";  // what ONNX Runtime's optimiser leaves in a file

// An operator without `newest` means in opset kNewestOpset what it means here; the kernels branch on the node's opset
// where an older meaning differs. Upsample and Scatter were withdrawn.
// clang-format off
constexpr Op kTable[] = {
    {.name = "Abs", .prepare = families::abs},
    {.name = "Acos", .prepare = families::acos},
    {.name = "Acosh", .prepare = families::acosh},
    {.name = "Add", .prepare = families::add, .kind = Kind::kBias},
    {.name = "And", .prepare = families::logical_and, .differentiable = false},
    {.name = "ArgMax", .prepare = families::arg_max, .differentiable = false},
    {.name = "ArgMin", .prepare = families::arg_min, .differentiable = false},
    {.name = "Asin", .prepare = families::asin},
    {.name = "Asinh", .prepare = families::asinh},
    {.name = "Atan", .prepare = families::atan},
    {.name = "Atanh", .prepare = families::atanh},
    {.name = "AveragePool", .prepare = families::average_pool},
    {.name = "BatchNormalization", .prepare = families::batch_normalization, .kind = Kind::kNormalise},
    {.name = "BiasGelu", .prepare = families::bias_gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
    {.name = "BitwiseAnd", .prepare = families::bitwise_and, .differentiable = false},
    {.name = "BitwiseOr", .prepare = families::bitwise_or, .differentiable = false},
    {.name = "BitwiseXor", .prepare = families::bitwise_xor, .differentiable = false},
    {.name = "Cast", .prepare = families::cast},
    {.name = "CastLike", .prepare = families::cast_like},
    {.name = "Ceil", .prepare = families::ceil, .differentiable = false},
    {.name = "Celu", .prepare = families::celu, .kind = Kind::kActivation},
    {.name = "Clip", .prepare = families::clip, .kind = Kind::kActivation},
    {.name = "Compress", .prepare = families::compress},
    {.name = "Concat", .prepare = families::concat},
    {.name = "Constant", .prepare = families::constant, .differentiable = false},
    {.name = "ConstantOfShape", .prepare = families::constant_of_shape, .differentiable = false},
    {.name = "Conv", .prepare = families::conv, .kind = Kind::kLinear, .units = families::conv_units},
    {.name = "ConvInteger", .prepare = families::conv_integer, .differentiable = false},
    {.name = "ConvTranspose", .prepare = families::conv_transpose, .kind = Kind::kLinear, .units = families::conv_transpose_units},
    {.name = "Cos", .prepare = families::cos},
    {.name = "Cosh", .prepare = families::cosh},
    {.name = "CumSum", .prepare = families::cum_sum},
    {.name = "DepthToSpace", .prepare = families::depth_to_space},
    {.name = "DequantizeLinear", .prepare = families::dequantize_linear},
    {.name = "Div", .prepare = families::div},
    {.name = "Dropout", .prepare = families::dropout},
    {.name = "DynamicQuantizeLinear", .prepare = families::dynamic_quantize_linear, .differentiable = false},
    {.name = "Einsum", .prepare = families::einsum},
    {.name = "Elu", .prepare = families::elu, .kind = Kind::kActivation},
    {.name = "Equal", .prepare = families::equal, .differentiable = false},
    {.name = "Erf", .prepare = families::erf},
    {.name = "Exp", .prepare = families::exp},
    {.name = "Expand", .prepare = families::expand},
    {.name = "EyeLike", .prepare = families::eye_like, .differentiable = false},
    {.name = "FastGelu", .prepare = families::fast_gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
    {.name = "Flatten", .prepare = families::flatten},
    {.name = "Floor", .prepare = families::floor, .differentiable = false},
    {.name = "FusedMatMul", .prepare = families::fused_matmul, .domain = kMicrosoft},
    {.name = "GRU", .prepare = families::gru, .kind = Kind::kLinear, .units = families::recurrent_units},
    {.name = "Gather", .prepare = families::gather},
    {.name = "GatherElements", .prepare = families::gather_elements},
    {.name = "GatherND", .prepare = families::gather_nd},
    {.name = "Gelu", .prepare = families::gelu, .kind = Kind::kActivation},
    {.name = "Gelu", .prepare = families::gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
    {.name = "Gemm", .prepare = families::gemm, .kind = Kind::kLinear, .units = families::gemm_units},
    {.name = "GlobalAveragePool", .prepare = families::global_average_pool},
    {.name = "GlobalLpPool", .prepare = families::global_lp_pool},
    {.name = "GlobalMaxPool", .prepare = families::global_max_pool},
    {.name = "Greater", .prepare = families::greater, .differentiable = false},
    {.name = "GreaterOrEqual", .prepare = families::greater_or_equal, .differentiable = false},
    {.name = "GridSample", .prepare = families::grid_sample},
    {.name = "GroupNormalization", .prepare = families::group_normalization, .kind = Kind::kNormalise},
    {.name = "HardSigmoid", .prepare = families::hard_sigmoid, .kind = Kind::kActivation},
    {.name = "HardSwish", .prepare = families::hard_swish, .kind = Kind::kActivation},
    {.name = "Hardmax", .prepare = families::hardmax, .differentiable = false},
    {.name = "Identity", .prepare = families::identity},
    {.name = "InstanceNormalization", .prepare = families::instance_normalization, .kind = Kind::kNormalise},
    {.name = "IsInf", .prepare = families::is_inf, .differentiable = false},
    {.name = "IsNaN", .prepare = families::is_nan, .differentiable = false},
    {.name = "LRN", .prepare = families::lrn},
    {.name = "LSTM", .prepare = families::lstm, .kind = Kind::kLinear, .units = families::recurrent_units},
    {.name = "LayerNormalization", .prepare = families::layer_normalization, .kind = Kind::kNormalise},
    {.name = "LeakyRelu", .prepare = families::leaky_relu, .kind = Kind::kActivation},
    {.name = "Less", .prepare = families::less, .differentiable = false},
    {.name = "LessOrEqual", .prepare = families::less_or_equal, .differentiable = false},
    {.name = "Log", .prepare = families::log},
    {.name = "LogSoftmax", .prepare = families::log_softmax},
    {.name = "LpNormalization", .prepare = families::lp_normalization},
    {.name = "LpPool", .prepare = families::lp_pool},
    {.name = "MatMul", .prepare = families::matmul, .kind = Kind::kLinear, .units = families::matmul_units},
    {.name = "MatMulInteger", .prepare = families::matmul_integer, .differentiable = false},
    {.name = "Max", .prepare = families::max},
    {.name = "MaxPool", .prepare = families::max_pool},
    {.name = "Mean", .prepare = families::mean},
    {.name = "MeanVarianceNormalization", .prepare = families::mean_variance_normalization, .kind = Kind::kNormalise},
    {.name = "Min", .prepare = families::min},
    {.name = "Mish", .prepare = families::mish, .kind = Kind::kActivation},
    {.name = "Mod", .prepare = families::mod},
    {.name = "Mul", .prepare = families::mul},
    {.name = "Neg", .prepare = families::neg},
    {.name = "NonZero", .prepare = families::non_zero, .differentiable = false},
    {.name = "Not", .prepare = families::logical_not, .differentiable = false},
    {.name = "OneHot", .prepare = families::one_hot},
    {.name = "Or", .prepare = families::logical_or, .differentiable = false},
    {.name = "PRelu", .prepare = families::prelu, .kind = Kind::kActivation},
    {.name = "Pad", .prepare = families::pad},
    {.name = "Pow", .prepare = families::pow},
    {.name = "QLinearConv", .prepare = families::qlinear_conv, .differentiable = false},
    {.name = "QLinearMatMul", .prepare = families::qlinear_matmul, .differentiable = false},
    {.name = "QuantizeLinear", .prepare = families::quantize_linear, .differentiable = false},
    {.name = "QuickGelu", .prepare = families::quick_gelu, .kind = Kind::kActivation, .domain = kMicrosoft},
    {.name = "RMSNormalization", .prepare = families::rms_normalization, .kind = Kind::kNormalise},
    {.name = "RNN", .prepare = families::rnn, .kind = Kind::kLinear, .units = families::recurrent_units},
    {.name = "Range", .prepare = families::range, .differentiable = false},
    {.name = "Reciprocal", .prepare = families::reciprocal},
    {.name = "ReduceL1", .prepare = families::reduce_l1},
    {.name = "ReduceL2", .prepare = families::reduce_l2},
    {.name = "ReduceLogSum", .prepare = families::reduce_log_sum},
    {.name = "ReduceLogSumExp", .prepare = families::reduce_log_sum_exp},
    {.name = "ReduceMax", .prepare = families::reduce_max},
    {.name = "ReduceMean", .prepare = families::reduce_mean},
    {.name = "ReduceMin", .prepare = families::reduce_min},
    {.name = "ReduceProd", .prepare = families::reduce_prod},
    {.name = "ReduceSum", .prepare = families::reduce_sum},
    {.name = "ReduceSumSquare", .prepare = families::reduce_sum_square},
    {.name = "Relu", .prepare = families::relu, .kind = Kind::kActivation},
    {.name = "Reshape", .prepare = families::reshape},
    {.name = "Resize", .prepare = families::resize},
    {.name = "ReverseSequence", .prepare = families::reverse_sequence},
    {.name = "Round", .prepare = families::round, .differentiable = false},
    {.name = "Scatter", .prepare = families::scatter_elements, .newest = 10},
    {.name = "ScatterElements", .prepare = families::scatter_elements},
    {.name = "ScatterND", .prepare = families::scatter_nd},
    {.name = "Selu", .prepare = families::selu, .kind = Kind::kActivation},
    {.name = "Shape", .prepare = families::shape, .differentiable = false},
    {.name = "Shrink", .prepare = families::shrink, .kind = Kind::kActivation},
    {.name = "Sigmoid", .prepare = families::sigmoid, .kind = Kind::kActivation},
    {.name = "Sign", .prepare = families::sign, .differentiable = false},
    {.name = "Sin", .prepare = families::sin},
    {.name = "Sinh", .prepare = families::sinh},
    {.name = "Size", .prepare = families::size, .differentiable = false},
    {.name = "SkipLayerNormalization", .prepare = families::skip_layer_normalization, .kind = Kind::kNormalise, .domain = kMicrosoft},
    {.name = "Slice", .prepare = families::slice},
    {.name = "Softmax", .prepare = families::softmax},
    {.name = "Softplus", .prepare = families::softplus, .kind = Kind::kActivation},
    {.name = "Softsign", .prepare = families::softsign, .kind = Kind::kActivation},
    {.name = "SpaceToDepth", .prepare = families::space_to_depth},
    {.name = "Split", .prepare = families::split},
    {.name = "Sqrt", .prepare = families::sqrt},
    {.name = "Squeeze", .prepare = families::squeeze},
    {.name = "Sub", .prepare = families::sub},
    {.name = "Sum", .prepare = families::sum},
    {.name = "Swish", .prepare = families::swish, .kind = Kind::kActivation},
    {.name = "Tan", .prepare = families::tan},
    {.name = "Tanh", .prepare = families::tanh, .kind = Kind::kActivation},
    {.name = "ThresholdedRelu", .prepare = families::thresholded_relu, .kind = Kind::kActivation},
    {.name = "Tile", .prepare = families::tile},
    {.name = "TopK", .prepare = families::top_k},
    {.name = "Transpose", .prepare = families::transpose, .kind = Kind::kReorder},
    {.name = "Trilu", .prepare = families::trilu},
    {.name = "Unsqueeze", .prepare = families::unsqueeze},
    {.name = "Upsample", .prepare = families::upsample, .newest = 9},
    {.name = "Where", .prepare = families::where},
    {.name = "Xor", .prepare = families::logical_xor, .differentiable = false},
};
// clang-format on

bool is_standard(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

constexpr bool comes_before(const Op& a, const Op& b) {
  return std::pair(a.name, a.domain) < std::pair(b.name, b.domain);
}
static_assert(std::is_sorted(std::begin(kTable), std::end(kTable), comes_before));

/// Why a node cannot run, or "".
std::string obstacle(const model::Node& node) {
  const Op* op = find(node.domain, node.op);
  if (!op) return "not supported";
  if (!is_standard(node.domain)) return "";
  if (node.opset < kOldestOpset) return fmt::format("older than opset {}", kOldestOpset);
  if (node.opset > op->newest) return fmt::format("changed after opset {}", op->newest);
  return "";
}

std::string full_name(const model::Node& node) {
  return is_standard(node.domain) ? node.op : fmt::format("{}.{}", node.domain, node.op);
}

/// The file's opset, when it is outside what we know: every operator may mean something else there.
void require_known_opset(const model::Graph& graph) {
  for (const char* domain : {"", "ai.onnx"}) {
    auto found = graph.opsets.find(domain);
    if (found == graph.opsets.end()) continue;
    if (found->second < kOldestOpset) {
      throw Unsupported(fmt::format("the file uses opset {}, the oldest supported is {}", found->second, kOldestOpset),
                        "convert it with onnx.version_converter, or export it again with a newer opset");
    }
    if (found->second > kNewestOpset) {
      throw Unsupported(fmt::format("the file uses opset {}, the newest supported is {}", found->second, kNewestOpset),
                        fmt::format("export it again with opset {} or older", kNewestOpset));
    }
  }
}

struct Refused {
  std::string reason, first;
  int nodes = 0, opset = 0;
};

std::string listed(const std::map<std::string, Refused>& refused) {
  std::vector<std::string> parts;
  for (const auto& [name, r] : refused) {
    std::string why = r.reason == "not supported" ? "" : ", " + r.reason;
    parts.push_back(
        fmt::format("{} ({} node{}, {}, opset {}{})", name, r.nodes, r.nodes == 1 ? "" : "s", r.first, r.opset, why));
  }
  return join(parts, ", ");
}

/// A value that everything up to the refused nodes can make, to end the network at.
std::string cut_before(const model::Graph& graph, const std::vector<int>& refused) {
  std::set<model::ValueId> tainted;
  size_t next = 0;
  std::string best;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    bool is_refused = next < refused.size() && refused[next] == int(i);
    next += is_refused;
    bool follows =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](model::ValueId id) { return tainted.count(id); });
    if (!is_refused && !follows) {
      if (!node.outputs.empty() && node.outputs[0] != model::kAbsent) best = graph.values[node.outputs[0]].name;
      continue;
    }
    tainted.insert(node.outputs.begin(), node.outputs.end());
    for (model::ValueId id : node.inputs) {
      bool usable = id != model::kAbsent && !tainted.count(id) && !graph.is_constant(id) &&
                    std::find(graph.inputs.begin(), graph.inputs.end(), id) == graph.inputs.end();
      if (usable) return graph.values[id].name;
    }
  }
  return best;
}

}  // namespace

std::span<const Op> table() { return kTable; }

const Op* find(std::string_view domain, std::string_view name) {
  Op key{.name = name, .prepare = nullptr, .domain = is_standard(domain) ? "" : domain};
  const Op* found = std::lower_bound(std::begin(kTable), std::end(kTable), key, comes_before);
  bool same = found != std::end(kTable) && found->name == name && found->domain == key.domain;
  return same ? found : nullptr;
}

void require_supported(const model::Graph& graph, const std::vector<bool>& needed) {
  require_known_opset(graph);
  std::map<std::string, Refused> refused;
  std::vector<int> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i < needed.size() && !needed[i]) continue;
    const model::Node& node = graph.nodes[i];
    std::string reason = obstacle(node);
    if (reason.empty()) continue;
    Refused& entry = refused[full_name(node)];
    if (entry.nodes++ == 0) entry = {reason, node.name, 1, node.opset};
    nodes.push_back(int(i));
  }
  if (refused.empty()) return;
  std::string cut = cut_before(graph, nodes);
  std::string hint = cut.empty() ? "" : fmt::format("--output {} ends the network before them", cut);
  bool one = refused.size() == 1;
  throw Unsupported(
      fmt::format("{} operator{} not supported: {}", refused.size(), one ? " is" : "s are", listed(refused)), hint);
}

Kernel prepare(const model::Graph& graph, const model::Node& node) {
  NodeView view(graph, node);
  std::string reason = obstacle(node);
  view.require(reason.empty(), "the operator is {} (opset {})", reason, node.opset);
  view.require(!node.outputs.empty(), "has no output");
  return find(node.domain, node.op)->prepare(view);
}

}  // namespace netmend::ops
