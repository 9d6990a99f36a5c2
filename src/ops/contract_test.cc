// What every row of the table must do, checked on one example or more of each operator.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <set>

#include "ops/node_for_test.h"

namespace netmend::ops {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

/// Away from 0 and 1, where some functions have corners.
at::Tensor away(at::IntArrayRef shape) {
  at::Tensor x = at::randn(shape, at::kDouble);
  return x + at::sign(x) * 0.11;
}
at::Tensor positive(at::IntArrayRef shape) { return at::rand(shape, at::kDouble) + 0.3; }
at::Tensor within(at::IntArrayRef shape) { return at::rand(shape, at::kDouble) * 1.6 - 0.8; }
at::Tensor scalar(double value) { return at::scalar_tensor(value, at::kDouble); }
at::Tensor bytes(at::IntArrayRef shape) { return at::randint(0, 255, shape, at::kByte); }
const at::Tensor kNone;

std::vector<NodeForTest> elementwise() {
  std::vector<NodeForTest> list;
  for (const char* op : {"Abs", "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Identity", "Neg",
                         "Round", "Sign", "Sin", "Sinh", "Tan"})
    list.push_back({op, {away({2, 3})}});
  for (const char* op : {"Acos", "Asin", "Atanh"}) list.push_back({op, {within({2, 3})}});
  for (const char* op : {"Log", "Reciprocal", "Sqrt"}) list.push_back({op, {positive({2, 3})}});
  list.push_back({"Acosh", {positive({2, 3}) + 1}});
  for (const char* op : {"Add", "Sub", "Mul", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min",
                         "Sum", "Mean"}) {
    list.push_back({op, {away({2, 3}), away({2, 3})}});
    list.push_back({op, {away({2, 3}), away({3})}});
    list.push_back({op, {away({3}), away({2, 3})}});
  }
  list.push_back({"Div", {away({2, 3}), positive({3})}});
  list.push_back({"Div", {ints({7, -7}), ints({2, 2})}});
  list.push_back({"Mod", {ints({7, -7}), ints({2, 2})}});
  list.push_back({"Pow", {positive({2, 3}), away({2, 3})}});
  list.push_back({"Pow", {positive({2, 3}), scalar(3)}});
  for (const char* op : {"And", "Or", "Xor"}) list.push_back({op, {bools({1, 0, 1, 0}), bools({1, 1, 0, 0})}});
  list.push_back({"Not", {bools({1, 0})}});
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"})
    list.push_back({op, {ints({1, 2, 3}), ints({3, 3, 5})}});
  list.push_back({"BitwiseNot", {ints({1, -2, 3})}});
  list.push_back({"BitShift", {ints({1, -2, 3}), ints({3, 1, 64})}, {{"direction", "LEFT"}}});
  list.push_back({.op = "BitCast", .inputs = {ints({1, -2})}, .attributes = {{"to", int64_t(11)}}, .constants = {0}});
  list.push_back({"SwiGLU", {away({2, 3}), away({2, 3})}, {{"alpha", 1.5f}}});
  for (const char* op : {"IsInf", "IsNaN"}) list.push_back({op, {away({4})}});
  list.push_back({"Where", {bools({1, 0, 1}), away({2, 3}), away({3})}});
  list.push_back({"Cast", {away({3})}, {{"to", int64_t(1)}}});
  list.push_back({"CastLike", {away({3}), away({1})}});
  return list;
}

std::vector<NodeForTest> activations() {
  std::vector<NodeForTest> list;
  for (const char* op : {"Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu",
                         "Shrink", "Sigmoid", "Softplus", "Softsign", "Swish", "Tanh", "ThresholdedRelu"})
    list.push_back({op, {away({2, 5})}});
  for (const char* op : {"FastGelu", "Gelu", "QuickGelu"})
    list.push_back({.op = op, .inputs = {away({2, 5})}, .domain = "com.microsoft"});
  list.push_back({.op = "BiasGelu", .inputs = {away({2, 5}), away({5})}, .domain = "com.microsoft"});
  list.push_back({"Clip", {away({2, 5}), scalar(-0.7), scalar(0.9)}});
  list.push_back({"PRelu", {away({2, 3, 2}), away({3, 1})}});
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    list.push_back({op, {away({2, 3, 4})}, {{"axis", int64_t(1)}}});
  return list;
}

std::vector<NodeForTest> reductions() {
  std::vector<NodeForTest> list;
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                         "ReduceMin", "ReduceProd", "ReduceSumSquare"}) {
    list.push_back({op, {positive({2, 3, 4})}, {{"axes", Ints{1, -1}}, {"keepdims", int64_t(0)}}});
    list.push_back({op, {positive({2, 3, 4}), ints({0})}, {}, 18});
  }
  list.push_back({"ReduceSum", {away({2, 3}), ints({1})}});
  for (const char* op : {"ArgMax", "ArgMin"}) list.push_back({op, {away({2, 3})}, {{"axis", int64_t(1)}}});
  list.push_back({.op = "TopK", .inputs = {away({2, 5}), ints({3})}, .outputs = 2});
  for (const char* op : {"CumProd", "CumSum"})
    list.push_back({op, {away({2, 5}), ints({1}, {})}, {{"exclusive", int64_t(1)}, {"reverse", int64_t(1)}}});
  list.push_back({"Det", {away({2, 3, 3})}});
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
    list.push_back(
        {op, {away({3, 4, 2}), ints({0, 3, 1, 1, 2, 0}, {3, 2}), positive({4})}, {{"ignore_index", int64_t(1)}}});
  return list;
}

std::vector<NodeForTest> shapes() {
  return {
      {"Reshape", {away({2, 6}), ints({0, -1, 2})}},
      {"Flatten", {away({2, 3, 4})}},
      {"Squeeze", {away({2, 1, 4}), ints({1})}},
      {"Unsqueeze", {away({2, 4}), ints({0, -1})}},
      {"Transpose", {away({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}}},
      {"Expand", {away({3, 1}), ints({2, 1, 4})}},
      {"Tile", {away({2, 3}), ints({2, 2})}},
      {"Shape", {away({2, 3})}},
      {"Size", {away({2, 3})}},
      {"Constant", {}, {{"value", reals({1, 2})}}},
      {"ConstantOfShape", {ints({2, 3})}},
      {"Range", {scalar(1), scalar(6), scalar(2)}},
      {"EyeLike", {away({3, 4})}},
      {"Concat", {away({2, 3}), away({2, 1})}, {{"axis", int64_t(-1)}}},
      {.op = "Split", .inputs = {away({4, 3}), ints({1, 3})}, .outputs = 2},
      {"Slice", {away({4, 5}), ints({-1, 1}), ints({-5, 5}), ints({0, 1}), ints({-2, 2})}},
      {"Pad", {away({2, 3}), ints({1, 0, 2, -1}), scalar(0.5)}},
      {"Pad", {away({2, 3}), ints({1, 4, 0, 5})}, {{"mode", "reflect"}}},
      {"Pad", {away({2, 3}), ints({1, 0, 2, 2})}, {{"mode", "edge"}}},
      {"Pad", {away({2, 3}), ints({1, 4, 2, 2})}, {{"mode", "wrap"}}, 19},
      {"DepthToSpace", {away({1, 8, 2, 3})}, {{"blocksize", int64_t(2)}, {"mode", "CRD"}}},
      {"SpaceToDepth", {away({1, 2, 4, 6})}, {{"blocksize", int64_t(2)}}},
      {"Trilu", {away({2, 3, 4}), ints({1}, {})}},
      {"ReverseSequence", {away({4, 3, 2}), ints({1, 4, 2})}},
      {"Compress", {away({4, 3}), bools({1, 0, 1})}, {{"axis", int64_t(0)}}},
      {"NonZero", {away({2, 3})}},
      {"CenterCropPad", {away({4, 3}), ints({1, 6})}},
      {.op = "Unique", .inputs = {at::tensor({2.0, 1.0, 1.0, 3.0}, at::kDouble)}, .outputs = 4},
      {.op = "Unique",
       .inputs = {at::tensor({2.0, 1.0, 2.0, 1.0, 3.0, 0.0}, at::kDouble).reshape({3, 2})},
       .attributes = {{"axis", int64_t(0)}, {"sorted", int64_t(0)}},
       .outputs = 4},
  };
}

std::vector<NodeForTest> indexing() {
  return {
      {"Gather", {away({4, 3}), ints({0, -1, 2, 2}, {2, 2})}},
      {"GatherElements", {away({3, 3}), ints({1, -2, 0, 2}, {2, 2})}, {{"axis", int64_t(1)}}},
      {"GatherND", {away({2, 3, 4}), ints({0, 2, 1, -1}, {2, 2})}},
      {"GatherND", {away({2, 3, 4}), ints({2, 0}, {2, 1})}, {{"batch_dims", int64_t(1)}}},
      {.op = "Scatter", .inputs = {away({3, 3}), ints({1, 0}, {1, 2}), away({1, 2})}, .opset = 10},
      {"ScatterElements", {away({3, 3}), ints({1, 0, 2, 1}, {2, 2}), away({2, 2})}},
      {"ScatterElements", {away({3, 3}), ints({1, 1, 1, 1}, {2, 2}), away({2, 2})}, {{"reduction", "add"}}},
      {"ScatterND", {away({4, 3}), ints({1, -1}, {2, 1}), away({2, 3})}},
      {"ScatterND", {away({4, 3}), ints({1, 1}, {2, 1}), away({2, 3})}, {{"reduction", "add"}}},
      {"ScatterND", {positive({4, 3}), ints({1, 1}, {2, 1}), positive({2, 3})}, {{"reduction", "mul"}}, 18},
      {"OneHot", {ints({1, -1, 7}), ints({4}, {}), away({2})}},
  };
}

std::vector<NodeForTest> products() {
  return {
      {"Gemm",
       {away({3, 2}), away({4, 3}), away({4})},
       {{"transA", int64_t(1)}, {"transB", int64_t(1)}, {"alpha", 0.5f}, {"beta", 2.f}}},
      {"MatMul", {away({2, 3, 4}), away({4, 5})}},
      {.op = "FusedMatMul",
       .inputs = {away({2, 4, 3}), away({4, 5})},
       .attributes = {{"transA", int64_t(1)}},
       .domain = "com.microsoft"},
      {"Einsum", {away({2, 3, 4}), away({2, 4, 5})}, {{"equation", "bij,bjk->bik"}}},
      {"Conv", {away({2, 3, 5}), away({4, 3, 2}), away({4})}},
      {"Conv",
       {away({2, 4, 5, 6}), away({6, 2, 3, 2}), away({6})},
       {{"group", int64_t(2)}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 2, 1}}}},
      {"Conv", {away({2, 1, 6, 6}), away({2, 1, 3, 3}), away({2})}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"Conv", {away({2, 3, 6, 6}), away({2, 3, 3, 3})}, {{"auto_pad", "SAME_LOWER"}, {"strides", Ints{2, 2}}}},
      {"Conv", {away({1, 2, 3, 4, 4}), away({3, 2, 2, 2, 2})}, {{"dilations", Ints{1, 2, 1}}}},
      {"ConvTranspose",
       {away({1, 2, 3, 3}), away({2, 3, 2, 3}), away({3})},
       {{"strides", Ints{2, 2}}, {"pads", Ints{0, 1, 1, 0}}}},
      {"AveragePool", {away({1, 2, 5, 6})}, {{"kernel_shape", Ints{2, 3}}}},
      {"AveragePool",
       {away({1, 2, 5, 6})},
       {{"kernel_shape", Ints{2, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 2}}, {"ceil_mode", int64_t(1)}}},
      {"MaxPool", {away({2, 2, 7})}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}}},
      {"MaxPool", {away({2, 2, 4, 6})}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {"MaxPool",
       {away({2, 2, 5, 6})},
       {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 1, 1, 0}}, {"dilations", Ints{1, 2}}}},
      {"MaxPool", {away({1, 2, 4, 4, 4})}, {{"kernel_shape", Ints{2, 2, 2}}}},
      {"LpPool", {positive({1, 2, 4})}, {{"kernel_shape", Ints{2}}}},
      {"GlobalAveragePool", {away({2, 3, 4, 5})}},
      {"GlobalMaxPool", {away({2, 3, 4, 5})}},
      {"GlobalLpPool", {away({2, 3, 4, 5})}},
  };
}

std::vector<NodeForTest> norms() {
  return {
      {"BatchNormalization", {away({3, 2, 4}), away({2}), away({2}), away({2}), positive({2})}},
      {.op = "BatchNormalization",
       .inputs = {away({3, 2, 4}), away({2}), away({2}), away({2}), positive({2})},
       .attributes = {{"training_mode", int64_t(1)}},
       .outputs = 3},
      {"InstanceNormalization", {away({2, 3, 4}), away({3}), away({3})}},
      {"GroupNormalization", {away({2, 4, 3}), away({2}), away({2})}, {{"num_groups", int64_t(2)}}, 18},
      {"GroupNormalization", {away({2, 4, 3}), away({4}), away({4})}, {{"num_groups", int64_t(2)}}, 21},
      {.op = "LayerNormalization", .inputs = {away({2, 3, 4}), away({4}), away({4})}, .outputs = 3},
      {"LayerNormalization", {away({2, 3, 4}), away({1, 4}), kNone}, {{"axis", int64_t(1)}}},
      {.op = "SkipLayerNormalization",
       .inputs = {away({2, 3, 4}), away({2, 3, 4}), away({4}), away({4})},
       .domain = "com.microsoft"},
      {"RMSNormalization", {away({2, 3, 4}), away({4})}, {}, 23},
      {"LpNormalization", {away({2, 3})}},
      {"MeanVarianceNormalization", {away({2, 3, 2, 2})}},
      {"LRN", {away({2, 5, 3})}, {{"size", int64_t(3)}, {"alpha", 0.1f}}},
      {"Dropout", {away({3, 4})}},
  };
}

std::vector<NodeForTest> recurrent() {
  Attributes both = {{"hidden_size", int64_t(3)}, {"direction", "bidirectional"}};
  Attributes gru = {{"hidden_size", int64_t(3)}, {"linear_before_reset", int64_t(1)}, {"layout", int64_t(1)}};
  return {
      {.op = "RNN",
       .inputs = {away({4, 2, 2}), away({2, 3, 2}), away({2, 3, 3}), away({2, 6})},
       .attributes = both,
       .outputs = 2},
      {.op = "GRU",
       .inputs = {away({2, 4, 2}), away({1, 9, 2}), away({1, 9, 3}), away({1, 18})},
       .attributes = gru,
       .outputs = 2},
      {.op = "GRU", .inputs = {away({4, 2, 2}), away({1, 9, 2}), away({1, 9, 3})}, .outputs = 2},
      {.op = "LSTM",
       .inputs = {away({4, 2, 2}), away({2, 12, 2}), away({2, 12, 3}), away({2, 24}), ints({2, 4}).to(at::kInt),
                  away({2, 1, 3}), away({2, 2, 3}), away({2, 9})},
       .attributes = both,
       .outputs = 3},
  };
}

std::vector<NodeForTest> others() {
  Attributes cubic = {{"mode", "cubic"}, {"cubic_coeff_a", -0.5f}, {"exclude_outside", int64_t(1)}};
  Attributes shrink = {{"mode", "linear"}, {"antialias", int64_t(1)}, {"axes", Ints{2, 3}}};
  at::Tensor byte_scale = scalar(0.02), zero = at::scalar_tensor(3, at::kByte);
  return {
      {"Resize", {away({1, 2, 3, 4}), kNone, reals({1, 1, 2, 1.5})}},
      {"Resize", {away({1, 2, 3, 4}), kNone, kNone, ints({1, 2, 5, 7})}, cubic},
      {"Resize", {away({1, 2, 9, 8}), kNone, kNone, ints({3, 4})}, shrink, 18},
      {"GridSample", {away({1, 2, 4, 5}), within({1, 3, 2, 2})}},
      {.op = "Upsample", .inputs = {away({1, 2, 3, 4}), reals({1, 1, 2, 2})}, .opset = 9},
      {"QuantizeLinear", {away({2, 3}), byte_scale, zero}},
      {"DequantizeLinear", {bytes({2, 3}), positive({3}), at::zeros({3}, at::kByte)}},
      {.op = "DynamicQuantizeLinear", .inputs = {away({2, 3})}, .outputs = 3},
      {"MatMulInteger", {bytes({2, 3}), bytes({3, 4}), zero, zero}},
      {"QLinearMatMul", {bytes({2, 3}), byte_scale, zero, bytes({3, 4}), byte_scale, zero, byte_scale, zero}},
      {"ConvInteger", {bytes({1, 2, 4, 4}), bytes({3, 2, 2, 2}), zero}},
      {"QLinearConv", {bytes({1, 2, 4, 4}), byte_scale, zero, bytes({3, 2, 2, 2}), byte_scale, zero, byte_scale, zero}},
  };
}

std::vector<NodeForTest> attentions() {
  Attributes heads = {{"q_num_heads", int64_t(4)}, {"kv_num_heads", int64_t(2)}};
  Attributes window = {{"is_causal", int64_t(1)}, {"left_window_size", int64_t(2)}, {"softcap", 3.f}};
  at::Tensor mask = at::tensor({1, 0, 1, 1, 0, 0, 1, 1, 1}, at::kLong).reshape({3, 3}).to(at::kBool);
  return {
      {.op = "Attention",
       .inputs = {away({2, 3, 8}), away({2, 5, 4}), away({2, 5, 6})},
       .attributes = heads,
       .opset = 23},
      {.op = "Attention",
       .inputs = {away({2, 2, 3, 4}), away({2, 2, 3, 4}), away({2, 2, 3, 4}), mask},
       .attributes = window,
       .opset = 25,
       .outputs = 4},
      {.op = "Attention",
       .inputs = {away({1, 2, 3, 4}), away({1, 2, 1, 4}), away({1, 2, 1, 2}), away({3, 4}), away({1, 2, 3, 4}),
                  away({1, 2, 3, 2})},
       .attributes = {{"qk_matmul_output_mode", int64_t(3)}},
       .opset = 24,
       .outputs = 4},
      {.op = "Attention",
       .inputs = {away({2, 2, 3, 4}), away({2, 2, 5, 4}), away({2, 2, 5, 4}), kNone, kNone, kNone, ints({2, 4})},
       .attributes = {{"is_causal", int64_t(1)}},
       .opset = 24},
      {.op = "FlexAttention",
       .inputs = {away({1, 4, 3, 2}), away({1, 2, 5, 2}), away({1, 2, 5, 3})},
       .opset = 1,
       .domain = "ai.onnx.preview"},
      {.op = "LinearAttention",
       .inputs = {away({2, 3, 8}), away({2, 3, 4}), away({2, 3, 6}), away({2, 2, 2, 3}), -positive({2, 3, 2}),
                  positive({2, 3, 2})},
       .attributes = heads,
       .opset = 27,
       .outputs = 2},
      {.op = "LinearAttention",
       .inputs = {away({2, 3, 8}), away({2, 3, 4}), away({2, 3, 6})},
       .attributes = {{"q_num_heads", int64_t(4)}, {"kv_num_heads", int64_t(2)}, {"update_rule", "linear"}},
       .opset = 27},
      {"RotaryEmbedding",
       {away({1, 2, 3, 6}), away({5, 2}), away({5, 2}), ints({4, 0, 2}, {1, 3})},
       {{"rotary_embedding_dim", int64_t(4)}},
       23},
      {"RotaryEmbedding",
       {away({2, 3, 8}), away({2, 3, 2}), away({2, 3, 2})},
       {{"num_heads", int64_t(2)}, {"interleaved", int64_t(1)}},
       23},
      {"TensorScatter", {away({2, 4, 3}), away({2, 2, 3}), ints({3, 1})}, {{"mode", "circular"}}, 24},
      {.op = "CausalConvWithState",
       .inputs = {away({2, 3, 5}), away({3, 1, 4}), away({3}), away({2, 3, 3})},
       .attributes = {{"activation", "silu"}},
       .opset = 27,
       .outputs = 2},
  };
}

std::vector<NodeForTest> signals() {
  return {
      {"DFT", {away({2, 5, 2})}, {{"axis", int64_t(1)}}},
      {"DFT", {away({2, 6, 1}), ints({8}, {}), ints({1}, {})}, {{"onesided", int64_t(1)}}, 20},
      {"DFT", {away({2, 4, 2}), kNone, ints({-2}, {})}, {{"onesided", int64_t(1)}, {"inverse", int64_t(1)}}, 20},
      {"STFT", {away({2, 9, 1}), ints({2}, {}), positive({4})}},
      {"HannWindow", {ints({6}, {})}},
      {"HammingWindow", {ints({6}, {})}, {{"periodic", int64_t(0)}}},
      {"BlackmanWindow", {ints({6}, {})}},
      {"MelWeightMatrix", {ints({4}, {}), ints({64}, {}), ints({8000}, {}), scalar(0), scalar(3000)}},
  };
}

std::vector<NodeForTest> detections() {
  Attributes pooled = {{"output_height", int64_t(2)}, {"output_width", int64_t(3)}, {"sampling_ratio", int64_t(2)}};
  Attributes largest = pooled;
  largest["mode"] = "max";
  at::Tensor rois = reals({0.3, 0.2, 3.1, 3.7, -2, 1.1, 2.4, 9.3}, {2, 4}), images = ints({1, 0});
  at::Tensor boxes = reals({0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 3, 1, 4}, {1, 3, 4}),
             scores = reals({.9, .8, .7}, {1, 1, 3});
  return {
      {"NonMaxSuppression", {boxes, scores, ints({2}), reals({0.5}), reals({0})}, {}, 11},
      {"RoiAlign", {away({2, 2, 5, 6}), rois, images}, pooled},
      {"RoiAlign", {away({2, 2, 5, 6}), rois, images}, largest, 22},
      {"DeformConv",
       {away({2, 4, 4, 5}), away({6, 2, 2, 2}), within({2, 16, 4, 5}) / 3 + 0.11, away({6}), positive({2, 8, 4, 5})},
       {{"group", int64_t(2)}, {"offset_group", int64_t(2)}, {"pads", Ints{0, 0, 1, 1}}},
       22},
      {"Col2Im",
       {away({2, 12, 9}), ints({3, 4}), ints({2, 3})},
       {{"pads", Ints{0, 1, 1, 0}}, {"strides", Ints{1, 1}}},
       18},
      {"AffineGrid", {away({2, 2, 3}), ints({2, 1, 3, 4})}, {}, 20},
      {"AffineGrid", {away({1, 3, 4}), ints({1, 1, 2, 3, 4})}, {{"align_corners", int64_t(1)}}, 20},
      {"MaxUnpool",
       {away({1, 1, 2, 2}), ints({5, 7, 13, 15}, {1, 1, 2, 2}), ints({1, 1, 5, 5})},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {"GridSample", {away({1, 2, 3, 4, 2}), within({1, 2, 2, 3, 3}) + 0.013}, {{"mode", "nearest"}}, 20},
  };
}

/// A body of one node, y = f(inputs), whose last `reads` inputs come from outside.
model::Subgraph body_of(const std::string& op, size_t inputs, std::vector<size_t> reads, bool condition) {
  auto graph = std::make_shared<model::Graph>();
  model::Node node{.name = op, .op = op, .domain = "", .opset = 17};
  for (size_t i = 0; i < inputs + reads.size(); ++i) graph->inputs.push_back(graph->add_value(fmt::format("x{}", i)));
  node.inputs.assign(graph->inputs.end() - 2, graph->inputs.end());
  node.outputs = {graph->add_value("y")};
  graph->nodes.push_back(node);
  if (condition) graph->outputs.push_back(graph->inputs[1]);
  for (int i = 0; i < 1 + condition; ++i) graph->outputs.push_back(node.outputs[0]);
  return {graph, std::move(reads)};
}

/// x + step in every turn: a state and what each turn gives.
std::vector<NodeForTest> controls() {
  Attributes branches = {{"then_branch", body_of("Mul", 0, {1, 2}, false)},
                         {"else_branch", body_of("Add", 0, {2, 1}, false)}};
  model::Subgraph scanned = body_of("Mul", 2, {}, false);
  auto twice = std::make_shared<model::Graph>(*scanned.graph);
  twice->outputs.push_back(twice->outputs[0]);
  return {
      {.op = "OptionalGetElement", .inputs = {away({2, 3})}, .opset = 18},
      {.op = "OptionalHasElement", .inputs = {away({2, 3})}, .opset = 18},
      {.op = "If", .inputs = {bools({1}, {}), away({2, 3}), away({3})}, .attributes = branches, .captured = 2},
      {.op = "If", .inputs = {bools({0}, {}), away({2, 3}), away({3})}, .attributes = branches, .captured = 2},
      {.op = "Loop",
       .inputs = {ints({3}, {}), bools({1}, {}), away({2, 3}), away({3})},
       .attributes = {{"body", body_of("Add", 3, {3}, true)}},
       .outputs = 2,
       .captured = 1},
      {.op = "Scan",
       .inputs = {away({3}), away({4, 3})},
       .attributes = {{"body", model::Subgraph{twice, {}}}, {"num_scan_inputs", int64_t(1)}},
       .outputs = 2},
  };
}

std::vector<NodeForTest> examples() {
  at::manual_seed(7);
  std::vector<NodeForTest> all;
  for (auto make : {elementwise, activations, reductions, shapes, indexing, products, norms, recurrent, others,
                    attentions, signals, detections, controls}) {
    std::vector<NodeForTest> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& t : tensors) result.push_back(t.defined() ? t.clone() : t);
  return result;
}

void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (!a[i].defined()) continue;
    ASSERT_EQ(a[i].sizes(), b[i].sizes()) << i;
    EXPECT_TRUE(at::allclose(a[i].to(at::kDouble), b[i].to(at::kDouble), tolerance, tolerance, true)) << i << "\n"
                                                                                                      << a[i] << "\n"
                                                                                                      << b[i];
  }
}

NodeForTest in_float(NodeForTest node) {
  for (at::Tensor& x : node.inputs) {
    if (x.defined() && x.scalar_type() == at::kDouble) x = x.to(at::kFloat);
  }
  return node;
}

TEST(Contract, EveryRowHasAnExample) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const NodeForTest& node : examples()) seen.insert({node.domain, node.op});
  for (const Op& op : table()) EXPECT_TRUE(seen.count({std::string(op.domain), std::string(op.name)})) << op.name;
}

TEST(Contract, RunsWithoutTouchingItsInputs) {
  for (const NodeForTest& node : examples()) {
    SCOPED_TRACE(node.op);
    std::vector<at::Tensor> before = copies(node.inputs);
    std::vector<at::Tensor> results = node.run(NodeForTest::Options{});
    ASSERT_TRUE(results[0].defined());
    expect_equal(before, node.inputs, 0);
  }
}

TEST(Contract, OverwritingGivesTheSameResult) {
  for (const NodeForTest& example : examples()) {
    SCOPED_TRACE(example.op);
    NodeForTest node = in_float(example), spare = node;
    spare.inputs = copies(node.inputs);
    expect_equal(node.run(NodeForTest::Options{}), spare.run({.spare = ~uint64_t(0)}), 1e-6);
  }
}

TEST(Contract, OverwritesOnlyMemoryThatNobodyElseSees) {
  for (const NodeForTest& example : examples()) {
    SCOPED_TRACE(example.op);
    NodeForTest node = in_float(example);
    node.inputs = copies(node.inputs);
    std::vector<at::Tensor> seen, before = copies(node.inputs);
    for (const at::Tensor& x : node.inputs) seen.push_back(x.defined() ? at::alias(x) : x);
    node.run({.spare = ~uint64_t(0)});
    expect_equal(seen, before, 0);
  }
}

TEST(Contract, DoublePrecisionAgreesWithSingle) {
  for (const NodeForTest& example : examples()) {
    if (example.op == "DynamicQuantizeLinear" || example.op == "QuantizeLinear") continue;  // may round the other way
    SCOPED_TRACE(example.op);
    NodeForTest single = in_float(example);
    expect_equal(single.run(NodeForTest::Options{}), example.run({.real = at::kDouble}), 2e-4);
    at::Tensor wide = example.run({.real = at::kDouble})[0];
    if (wide.is_floating_point()) {
      EXPECT_EQ(wide.scalar_type(), at::kDouble);
    }
  }
}

/// One number that depends on all outputs that have a gradient.
at::Tensor summary(const std::vector<at::Tensor>& outputs) {
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const at::Tensor& y : outputs) {
    if (!y.defined() || !y.is_floating_point()) continue;
    sum = sum + (y * at::cos(at::arange(y.numel(), at::kDouble) + 0.3).reshape(y.sizes())).sum();
  }
  return sum;
}

double slope(NodeForTest node, size_t input, int64_t element) {
  constexpr double step = 1e-6;
  at::Tensor x = node.inputs[input].clone();
  auto at_offset = [&](double offset) {
    node.inputs[input] = x.clone();
    node.inputs[input].view(-1)[element] += offset;
    return summary(node.run({.real = at::kDouble})).item<double>();
  };
  return (at_offset(step) - at_offset(-step)) / (2 * step);
}

void expect_gradients(NodeForTest node) {
  std::vector<at::Tensor> leaves;
  for (at::Tensor& x : node.inputs) {
    if (x.defined() && x.scalar_type() == at::kDouble) leaves.push_back(x = x.clone().contiguous().requires_grad_());
  }
  at::Tensor total = summary(node.run({.real = at::kDouble}));
  if (!total.requires_grad()) return;
  total.backward();
  at::NoGradGuard off;
  NodeForTest plain = node;
  for (at::Tensor& x : plain.inputs) x = x.defined() ? x.detach() : x;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const at::Tensor& x = node.inputs[i];
    if (!x.defined() || !x.requires_grad() || !x.grad().defined()) continue;
    for (int64_t e = 0; e < x.numel(); e += 1 + x.numel() / 7) {
      double expected = slope(plain, i, e);
      EXPECT_NEAR(x.grad().reshape({-1})[e].item<double>(), expected, 1e-5 * (1 + std::abs(expected)))
          << "input " << i << " element " << e;
    }
  }
}

TEST(Contract, GradientsAreThoseOfFiniteDifferences) {
  for (const NodeForTest& node : examples()) {
    const Op* op = find(node.domain, node.op);
    if (!op || !op->differentiable) continue;
    SCOPED_TRACE(node.op);
    expect_gradients(node);
  }
}

}  // namespace
}  // namespace netmend::ops
