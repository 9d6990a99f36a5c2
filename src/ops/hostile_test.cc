// Nodes as a broken or malicious file may hold them: every one must be refused by an exception, whatever it asks for.
#include <gtest/gtest.h>

#include <limits>

#include "model/guard.h"
#include "ops/node_for_test.h"

namespace netmend::ops {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max(), kLowest = std::numeric_limits<int64_t>::min();

at::Tensor image() { return at::ones({1, 2, 4, 4}); }
at::Tensor filters() { return at::ones({2, 2, 3, 3}); }
const at::Tensor kNone;

std::vector<NodeForTest> bad_windows() {
  std::vector<NodeForTest> list;
  for (const char* op : {"Conv", "ConvTranspose", "MaxPool", "AveragePool"}) {
    std::vector<at::Tensor> inputs = {image()};
    if (std::string(op).starts_with("Conv")) inputs.push_back(filters());
    auto bad = [&](const char* name, model::Attribute value) {
      Attributes attributes = {{"kernel_shape", Ints{3, 3}}};
      attributes[name] = std::move(value);
      list.push_back({op, inputs, std::move(attributes)});
    };
    bad("strides", Ints{0, 1});
    bad("strides", Ints{-1, 1});
    bad("strides", Ints{1});
    bad("dilations", Ints{0, 0});
    bad("pads", Ints{-1, 0, 0, 0});
    bad("pads", Ints{1, 1});
    bad("kernel_shape", Ints{0, 3});
    bad("kernel_shape", Ints{3, 3, 3});
    bad("auto_pad", std::string("SOME"));
    bad("strides", int64_t(1));
    for (const char* name : {"strides", "dilations"}) bad(name, Ints{int64_t(1) << 31, 1});
  }
  list.push_back({"MaxPool", {image()}});
  list.push_back({"MaxPool", {image()}, {{"kernel_shape", Ints{9, 9}}}});
  list.push_back({"MaxPool", {image()}, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}});
  list.push_back({"MaxPool", {image()}, {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{kHuge, 1}}}});
  list.push_back({"AveragePool", {at::ones({4})}, {{"kernel_shape", Ints{2}}}});
  list.push_back({"Conv", {image(), filters()}, {{"group", int64_t(0)}}});
  list.push_back({"Conv", {image(), filters()}, {{"group", int64_t(3)}}});
  list.push_back({"Conv", {image(), at::ones({2, 2, 3})}});
  list.push_back({"Conv", {image(), at::ones({2, 2, 0, 3})}});
  list.push_back({"Conv", {image()}});
  list.push_back({"ConvTranspose", {image(), filters()}, {{"output_padding", Ints{-1, 0}}}});
  list.push_back({"ConvTranspose", {image(), filters()}, {{"output_shape", Ints{0, 3}}}});
  list.push_back({"ConvTranspose", {image(), filters()}, {{"pads", Ints{9, 9, 9, 8}}}});
  return list;
}

std::vector<NodeForTest> bad_shapes() {
  at::Tensor x = at::ones({2, 3});
  return {
      {"Reshape", {x, ints({-1, -1})}},
      {"Reshape", {x, ints({kHuge, kHuge})}},
      {"Reshape", {x, ints({4, -1})}},
      {"Reshape", {x, ints({0, 0, 0})}},
      {"Reshape", {x, ints({-2, 3})}},
      {"Reshape", {x}},
      {"Reshape", {x, reals({2, 3})}},
      {"Flatten", {x}, {{"axis", int64_t(5)}}},
      {"Squeeze", {x, ints({0})}},
      {"Squeeze", {x, ints({7})}},
      {"Unsqueeze", {x, ints({0, 0})}},
      {"Unsqueeze", {x, ints({9})}},
      {"Transpose", {x}, {{"perm", Ints{0, 0}}}},
      {"Transpose", {x}, {{"perm", Ints{0}}}},
      {"Transpose", {x}, {{"perm", Ints{0, 5}}}},
      {"Expand", {x, ints({4, 3})}},
      {"Expand", {x, ints({-1, 3})}},
      {"Tile", {x, ints({kHuge, kHuge})}},
      {"Tile", {x, ints({-1, 1})}},
      {"Tile", {x, ints({1})}},
      {"ConstantOfShape", {ints({kHuge, kHuge})}},
      {"ConstantOfShape", {ints({-3})}},
      {"Constant", {}},
      {"Range", {ints({0}, {}), ints({5}, {}), ints({0}, {})}},
      {"Range", {ints({kLowest}, {}), ints({kHuge}, {}), ints({1}, {})}},
      {"Range", {reals({0}, {}), reals({1e30}, {}), reals({1e-30}, {})}},
      {"Range", {reals({0}, {}), reals({5}, {}), reals({0}, {})}},
      {"Concat", {x, at::ones({3, 3})}, {{"axis", int64_t(1)}}},
      {"Concat", {x, x}, {{"axis", int64_t(4)}}},
      {"Concat", {x, x}},
      {"Concat", {}, {{"axis", int64_t(0)}}},
      {.op = "Split", .inputs = {x, ints({1, 3})}, .attributes = {{"axis", int64_t(0)}}, .outputs = 2},
      {.op = "Split", .inputs = {x, ints({-1, 3})}, .attributes = {{"axis", int64_t(0)}}, .outputs = 2},
      {.op = "Split", .inputs = {x}, .attributes = {{"axis", int64_t(1)}}, .outputs = 2},
      {"Slice", {x, ints({0}), ints({1}), ints({0}), ints({0})}},
      {"Slice", {x, ints({0}), ints({1, 1})}},
      {"Slice", {x, ints({0}), ints({1}), ints({9})}},
      {"Slice", {x, ints({0, 0, 0}), ints({1, 1, 1})}},
      {"Pad", {x, ints({1})}},
      {"Pad", {x, ints({-9, 0, 0, 0})}},
      {"Pad", {x, ints({-9, 0, 0, 0})}, {{"mode", "edge"}}},
      {"Pad", {at::ones({0, 3}), ints({1, 0, 0, 0})}, {{"mode", "reflect"}}},
      {"Pad", {x, ints({kHuge, 0, kHuge, 0})}},
      {"Pad", {x, ints({1, 1, 1, 1})}, {{"mode", "odd"}}},
      {"DepthToSpace", {image()}, {{"blocksize", int64_t(0)}}},
      {"DepthToSpace", {image()}, {{"blocksize", int64_t(3)}}},
      {"SpaceToDepth", {image()}, {{"blocksize", int64_t(3)}}},
      {"SpaceToDepth", {x}, {{"blocksize", int64_t(1)}}},
      {"Trilu", {at::ones({3})}},
      {"Cast", {x}, {{"to", int64_t(8)}}},
      {"Cast", {x}},
      {"EyeLike", {at::ones({3})}},
      {"ReverseSequence", {at::ones({3, 2}), ints({9, 1})}},
  };
}

std::vector<NodeForTest> bad_values() {
  at::Tensor x = at::ones({2, 3});
  return {
      {"Div", {ints({1}), ints({0})}},
      {"Mod", {ints({1}), ints({0})}},
      {"Mod", {ints({1}), ints({0})}, {{"fmod", int64_t(1)}}},
      {"Gather", {x, ints({2})}},
      {"Gather", {x, ints({-3})}},
      {"Gather", {x, reals({0})}},
      {"Gather", {x, ints({0})}, {{"axis", int64_t(2)}}},
      {"GatherElements", {x, ints({5}, {1, 1})}},
      {"GatherElements", {x, ints({0})}},
      {"GatherND", {x, ints({0, 0, 0}, {1, 3})}},
      {"GatherND", {x, ints({7}, {1, 1})}},
      {"GatherND", {x, ints({0}, {1, 1})}, {{"batch_dims", int64_t(-1)}}},
      {"GatherND", {x, ints({0}, {1, 1})}, {{"batch_dims", int64_t(9)}}},
      {"GatherND", {x, ints({0}, {})}},
      {"ScatterElements", {x, ints({9}, {1, 1}), at::ones({1, 1})}},
      {"ScatterElements", {x, ints({0}, {1, 1}), at::ones({2, 2})}},
      {"ScatterElements", {x, ints({0}, {1, 1}), at::ones({1, 1})}, {{"reduction", "odd"}}},
      {"ScatterND", {x, ints({9}, {1, 1}), at::ones({1, 3})}},
      {"ScatterND", {x, ints({0}, {1, 1}), at::ones({2})}},
      {"OneHot", {ints({0}), ints({0}, {}), reals({0, 1})}},
      {"OneHot", {ints({0}), ints({3}, {}), reals({0, 1, 2})}},
      {"TopK", {x, ints({9})}},
      {"TopK", {x, ints({-1})}},
      {"ArgMax", {at::ones({0, 3})}},
      {"ArgMax", {x}, {{"axis", int64_t(-3)}}},
      {"ReduceSum", {x, ints({0, 0})}},
      {"ReduceSum", {x, ints({4})}},
      {"CumSum", {x, ints({4}, {})}},
      {"Softmax", {x}, {{"axis", int64_t(3)}}},
      {"Softmax", {x}, {{"axis", int64_t(3)}}, 11},
      {"Clip", {x, reals({1, 2})}},
      {"Gemm", {x, x}},
      {"Gemm", {x, at::ones({3})}},
      {"Gemm", {x, at::ones({3, 4}), at::ones({5})}},
      {"MatMul", {x, x}},
      {"MatMul", {x, at::ones({})}},
      {"Einsum", {x}, {{"equation", "ij,jk->ik"}}},
      {"Einsum", {x}, {{"equation", "->->"}}},
      {"Einsum", {x}},
      {"Add", {x, at::ones({4})}},
      {"Add", {x}},
      {"Celu", {x}, {{"alpha", 0.f}}},
      {"BatchNormalization", {image(), at::ones({3}), at::ones({2}), at::ones({2}), at::ones({2})}},
      {"LayerNormalization", {x, at::ones({3})}, {{"axis", int64_t(5)}}},
      {"GroupNormalization", {image(), at::ones({2}), at::ones({2})}, {{"num_groups", int64_t(0)}}, 21},
      {"GroupNormalization", {image(), at::ones({2}), at::ones({2})}, {{"num_groups", int64_t(3)}}, 21},
      {"InstanceNormalization", {at::ones({3}), at::ones({3}), at::ones({3})}},
      {"LRN", {image()}, {{"size", int64_t(0)}}},
      {"Dropout", {x, reals({1.5}, {}), bools({1}, {})}},
      {"Dropout", {x, reals({0.5}, {}), bools({1}, {})}},
      {"QuantizeLinear", {x, reals({1, 1})}},
      {"QuantizeLinear", {x, reals({1}, {}), reals({0}, {})}},
      {"DequantizeLinear", {at::ones({2, 3}, at::kByte), reals({1, 1, 1, 1})}},
      {"DequantizeLinear", {at::ones({2, 3}, at::kByte), reals({1}, {1, 1})}, {{"block_size", int64_t(2)}}, 21},
      {"Resize", {image(), kNone, reals({1, 1, 0, 1})}},
      {"Resize", {image(), kNone, reals({1, 1})}},
      {"Resize", {image(), kNone, reals({1, 1, 1e30, 1e30})}},
      {"Resize", {image(), kNone, reals({1, 1, 2, 2}), ints({1, 2, 8, 8})}},
      {"Resize", {image()}},
      {"Resize", {image(), kNone, kNone, ints({1, 2, -8, 8})}},
      {"Resize", {image(), kNone, reals({1, 1, 2, 2})}, {{"mode", "odd"}}},
      {"Resize", {image(), kNone, reals({1, 1, 1e-9, 1})}, {{"mode", "linear"}, {"antialias", int64_t(1)}}, 18},
  };
}

std::vector<NodeForTest> bad_recurrent() {
  at::Tensor x = at::ones({4, 2, 3}), w = at::ones({1, 20, 3}), r = at::ones({1, 20, 5});
  return {
      {"LSTM", {x, w}},
      {"LSTM", {x, w, at::ones({1, 20, 4})}},
      {"LSTM", {x, at::ones({1, 20, 2}), r}},
      {"LSTM", {x, w, r}, {{"direction", "sideways"}}},
      {"LSTM", {x, w, r}, {{"direction", "bidirectional"}}},
      {"LSTM", {x, w, r}, {{"hidden_size", int64_t(7)}}},
      {"LSTM", {x, w, r}, {{"activations", std::vector<std::string>{"Tanh"}}}},
      {"LSTM", {x, w, r}, {{"activations", std::vector<std::string>{"Odd", "Tanh", "Tanh"}}}},
      {"LSTM", {x, w, r}, {{"layout", int64_t(2)}}},
      {"LSTM", {x, w, r, at::ones({1, 20})}},
      {"LSTM", {x, w, r, kNone, ints({9, 1})}},
      {"LSTM", {x, w, r, kNone, ints({1})}},
      {"LSTM", {x, w, r, kNone, kNone, at::ones({1, 3, 5})}},
      {"LSTM", {x, w, r, kNone, kNone, kNone, at::ones({5})}},
      {"LSTM", {x, w, r, kNone, kNone, kNone, kNone, at::ones({1, 20})}},
      {"GRU", {at::ones({4, 2}), w, r}},
      {"RNN", {x, w, r}, {{"clip", -1.f}}},
  };
}

std::vector<NodeForTest> bad_attention() {
  at::Tensor q = at::ones({1, 2, 3, 4}), flat = at::ones({1, 3, 8});
  Attributes heads = {{"q_num_heads", int64_t(3)}, {"kv_num_heads", int64_t(2)}};
  Attributes two = {{"q_num_heads", int64_t(2)}, {"kv_num_heads", int64_t(2)}};
  Attributes plain = two;
  plain["update_rule"] = "linear";
  return {
      {"Attention", {q, q}, {}, 23},
      {"Attention", {flat, flat, flat}, {}, 23},
      {"Attention", {flat, flat, flat}, heads, 23},
      {"Attention", {q, at::ones({1, 2, 3, 5}), q}, {}, 23},
      {"Attention", {q, at::ones({1, 0, 3, 4}), at::ones({1, 0, 3, 4})}, {}, 23},
      {"Attention", {q, q, q, at::ones({7, 7})}, {}, 23},
      {"Attention", {q, q, q, at::ones({})}, {}, 23},
      {"Attention", {q, q, q, kNone, q}, {}, 23},
      {"Attention", {q, q, q, kNone, q, q, ints({3})}, {}, 24},
      {"Attention", {q, q, q, kNone, kNone, kNone, ints({3, 3})}, {}, 24},
      {"Attention", {q, q, q}, {{"left_window_size", int64_t(-2)}}, 25},
      {"Attention", {q, q, q}, {{"qk_matmul_output_mode", int64_t(4)}}, 23},
      {"Attention", {q, q, q}, {{"softmax_precision", int64_t(7)}}, 23},
      {"Attention", {at::ones({1, 2, 3, 0}), at::ones({1, 2, 3, 0}), q}, {}, 23},
      {"LinearAttention", {flat, flat, flat}, two, 27},
      {"LinearAttention", {flat, flat, flat}, {{"update_rule", "odd"}}, 27},
      {"LinearAttention", {flat, at::ones({1, 2, 8}), flat}, plain, 27},
      {"LinearAttention", {flat, flat, flat, at::ones({1, 2, 4, 5})}, plain, 27},
      {"RotaryEmbedding", {q, at::ones({5, 2}), at::ones({5, 2}), ints({9, 0, 0}, {1, 3})}, {}, 23},
      {"RotaryEmbedding", {q, at::ones({5, 2}), at::ones({5, 2}), ints({-1, 0, 0}, {1, 3})}, {}, 23},
      {"RotaryEmbedding", {q, at::ones({5, 3}), at::ones({5, 3}), ints({1, 0, 0}, {1, 3})}, {}, 23},
      {"RotaryEmbedding", {q, at::ones({1, 3, 2}), at::ones({1, 3, 2})}, {{"rotary_embedding_dim", int64_t(3)}}, 23},
      {"RotaryEmbedding", {q, at::ones({1, 3, 4}), at::ones({1, 3, 4})}, {{"rotary_embedding_dim", int64_t(8)}}, 23},
      {"TensorScatter", {q, q, ints({1})}, {}, 24},
      {"TensorScatter", {q, q, ints({kHuge})}, {}, 24},
      {"TensorScatter", {q, q}, {{"axis", int64_t(0)}}, 24},
      {"TensorScatter", {q, at::ones({1, 2, 4, 4})}, {}, 24},
      {"CausalConvWithState", {flat, at::ones({2, 1, 2})}, {}, 27},
      {"CausalConvWithState", {flat, at::ones({3, 1, 0})}, {}, 27},
      {"CausalConvWithState", {flat, at::ones({3, 1, 2}), kNone, at::ones({1, 3, 9})}, {}, 27},
      {"CausalConvWithState", {flat, at::ones({3, 1, 2})}, {{"activation", "odd"}}, 27},
      {.op = "FlexAttention", .inputs = {flat, flat, flat}, .opset = 1, .domain = "ai.onnx.preview"},
  };
}

std::vector<NodeForTest> bad_signals_and_boxes() {
  at::Tensor signal = at::ones({1, 8, 1}), boxes = at::ones({1, 3, 4}), rois = reals({0, 0, 1, 1}, {1, 4});
  at::Tensor weight = at::ones({2, 2, 3, 3}), offset = at::zeros({1, 18, 2, 2});
  Attributes pool = {{"kernel_shape", Ints{2, 2}}};
  return {
      {"DFT", {at::ones({4})}},
      {"DFT", {at::ones({1, 8, 3})}},
      {"DFT", {signal, ints({0}, {})}},
      {"DFT", {signal, ints({kHuge}, {})}},
      {"DFT", {signal}, {{"axis", int64_t(2)}}},
      {"STFT", {signal, ints({0}, {})}},
      {"STFT", {signal, ints({1}, {}), kNone, ints({9}, {})}},
      {"STFT", {signal, ints({1}, {}), at::ones({3}), ints({4}, {})}},
      {"STFT", {at::ones({1, 8, 2}), ints({1}, {})}},
      {"HannWindow", {ints({-1}, {})}},
      {"HannWindow", {ints({kHuge}, {})}},
      {"MelWeightMatrix", {ints({kHuge}, {}), ints({8}, {}), ints({8}, {}), reals({0}, {}), reals({1}, {})}},
      {"MelWeightMatrix", {ints({2}, {}), ints({8}, {}), ints({0}, {}), reals({0}, {}), reals({1}, {})}},
      {"MelWeightMatrix", {ints({2}, {}), ints({8}, {}), ints({8}, {}), reals({0}, {}), reals({1e9}, {})}},
      {"NonMaxSuppression", {boxes, at::ones({1, 1, 2}), ints({1})}},
      {"NonMaxSuppression", {at::ones({3, 4}), at::ones({1, 1, 3}), ints({1})}},
      {"RoiAlign", {image(), rois, ints({1})}},
      {"RoiAlign", {image(), rois, ints({-1})}},
      {"RoiAlign", {image(), reals({0, 0, 1e30, 1e30}, {1, 4}), ints({0})}},
      {"RoiAlign", {image(), rois, ints({0})}, {{"output_height", int64_t(0)}}},
      {"RoiAlign", {image(), rois, ints({0})}, {{"output_height", kHuge}}},
      {"RoiAlign", {image(), rois, ints({0})}, {{"sampling_ratio", kHuge}}},
      {"DeformConv", {image(), weight, at::zeros({1, 9, 2, 2})}, {}, 19},
      {"DeformConv", {image(), weight, at::zeros({1, 18, 3, 2})}, {}, 19},
      {"DeformConv", {image(), weight, offset}, {{"group", int64_t(0)}}, 19},
      {"DeformConv", {image(), weight, offset}, {{"offset_group", int64_t(3)}}, 19},
      {"Col2Im", {at::ones({1, 4, 9}), ints({3, 3}), ints({2, 2})}, {}, 18},
      {"Col2Im", {at::ones({1, 4, 4}), ints({kHuge, kHuge}), ints({2, 2})}, {}, 18},
      {"Col2Im", {at::ones({1, 4, 4}), ints({3, 3}), ints({0, 2})}, {}, 18},
      {"Col2Im", {at::ones({1, 4, 4}), ints({3, 3}), ints({2, 2})}, {{"strides", Ints{0, 1}}}, 18},
      {"AffineGrid", {at::ones({1, 2, 3}), ints({1, 1, kHuge, kHuge})}, {}, 20},
      {"AffineGrid", {at::ones({1, 2, 3}), ints({1, 1, 2})}, {}, 20},
      {"AffineGrid", {at::ones({1, 2, 3}), ints({2, 1, 2, 2})}, {}, 20},
      {"MaxUnpool", {at::ones({1, 1, 2, 2}), ints({0, 1, 2, 99}, {1, 1, 2, 2})}, pool},
      {"MaxUnpool", {at::ones({1, 1, 2, 2}), ints({0, 1, 2, -1}, {1, 1, 2, 2})}, pool},
      {"MaxUnpool", {at::ones({1, 1, 2, 2}), ints({0, 1, 2, 3}, {1, 1, 2, 2}), ints({1, 1, 2, 2})}, pool},
      {"CenterCropPad", {at::ones({2, 3}), ints({kHuge, kHuge})}},
      {"CenterCropPad", {at::ones({2, 3}), ints({-1, 2})}},
      {"Unique", {at::ones({0})}},
      {"Unique", {at::ones({2})}, {{"axis", int64_t(3)}}},
      {"Det", {at::ones({2, 3})}},
      {"BitShift", {ints({1}), ints({1})}, {{"direction", "UP"}}},
      {"BitShift", {reals({1}), ints({1})}, {{"direction", "LEFT"}}},
      {"BitwiseNot", {reals({1})}},
      {"BitCast", {ints({1})}, {{"to", int64_t(1)}}},
      {"SoftmaxCrossEntropyLoss", {at::ones({2, 3}), ints({0, 3})}},
      {"SoftmaxCrossEntropyLoss", {at::ones({2, 3}), ints({0, -1})}},
      {"NegativeLogLikelihoodLoss", {at::ones({2, 3}), ints({0, 1, 2})}},
      {"NegativeLogLikelihoodLoss", {at::ones({2, 3}), ints({0, 1}), at::ones({2})}},
      {"If", {bools({1}, {})}},
      {"Loop", {ints({1}, {}), bools({1}, {})}},
      {"Scan", {at::ones({3})}, {{"num_scan_inputs", int64_t(1)}}},
      {"If", {bools({1}, {})}, {{"then_branch", model::Subgraph{}}, {"else_branch", model::Subgraph{}}}},
  };
}

void expect_refused(const std::vector<NodeForTest>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    SCOPED_TRACE(fmt::format("{} {}", nodes[i].op, i));
    EXPECT_ANY_THROW(nodes[i].run());
  }
}

TEST(Hostile, Windows) { expect_refused(bad_windows()); }
TEST(Hostile, Shapes) { expect_refused(bad_shapes()); }
TEST(Hostile, Values) { expect_refused(bad_values()); }
TEST(Hostile, Recurrent) { expect_refused(bad_recurrent()); }
TEST(Hostile, Attention) { expect_refused(bad_attention()); }
TEST(Hostile, SignalsAndBoxes) { expect_refused(bad_signals_and_boxes()); }

/// The largest numbers that are let through: the libraries below may refuse them in their own ways. (A transposed
/// convolution has as large an output as they ask for, and the budget of memory to stop it.)
TEST(Hostile, WindowsAtTheirLimits) {
  for (const char* op : {"Conv", "MaxPool", "AveragePool"})
    for (const char* name : {"strides", "dilations"})
      for (const Ints& numbers : {Ints{int64_t(1) << 30, 1}, Ints{int64_t(1) << 30, int64_t(1) << 30}})
        for (int64_t size : {1, 3}) {
          SCOPED_TRACE(fmt::format("{} {} {}", op, name, size));
          NodeForTest node{op, {image()}, {{"kernel_shape", Ints{size, size}}, {name, numbers}}};
          if (std::string(op) == "Conv") node.inputs.push_back(at::ones({2, 2, size, size}));
          try {
            model::guarded([] { return std::string("node"); }, [&] { node.run(); });
          } catch (const InputError&) {
          }
        }
}

TEST(Hostile, LowestDividedByMinusOneWraps) {
  at::Tensor low = ints({kLowest, 7}), minus = ints({-1, -1});
  EXPECT_TRUE(at::equal(NodeForTest{"Div", {low, minus}}.run(), ints({kLowest, -7})));
  EXPECT_TRUE(at::equal(NodeForTest{"Mod", {low, minus}}.run(), ints({0, 0})));
  at::Tensor narrow = at::full({40}, std::numeric_limits<int32_t>::min(), at::kInt);
  EXPECT_NO_THROW((NodeForTest{"Div", {narrow, at::full({40}, -1, at::kInt)}}.run()));
}

TEST(Hostile, ExtremeSlicesAreEmptyOrWhole) {
  at::Tensor x = at::arange(5, at::kFloat);
  auto sliced = [&](int64_t start, int64_t end, int64_t step) {
    return NodeForTest{"Slice", {x, ints({start}), ints({end}), ints({0}), ints({step})}}.run();
  };
  EXPECT_TRUE(at::equal(sliced(kLowest, kHuge, 1), x));
  EXPECT_TRUE(at::equal(sliced(kHuge, kLowest, -1), at::flip(x, 0)));
  EXPECT_EQ(sliced(kHuge, kLowest, 1).numel(), 0);
  EXPECT_EQ(sliced(kLowest, kHuge, -1).numel(), 0);
  EXPECT_EQ(sliced(0, kHuge, kHuge).numel(), 1);
  EXPECT_EQ(sliced(-1, kLowest, kLowest).numel(), 1);
  EXPECT_TRUE(at::equal(sliced(-2, -6, -2), reals({3, 1})));
  EXPECT_TRUE(at::equal(sliced(4, 0, -2), reals({4, 2})));
}

/// Every operator with far too few, empty or scalar inputs: it may refuse, it must come back.
TEST(Hostile, NothingCrashesOnOddInputs) {
  std::vector<std::vector<at::Tensor>> odd = {{},
                                              {kNone},
                                              {at::ones({})},
                                              {at::ones({0})},
                                              {at::ones({}), at::ones({})},
                                              {at::ones({0, 3}), at::ones({3, 0})},
                                              {at::ones({2, 3, 0, 4}), at::ones({2, 3, 0, 4}), at::ones({0})},
                                              {ints({0}), ints({-1}), ints({kLowest}), ints({kHuge})},
                                              {bools({1, 0}), bools({0, 1}), bools({1, 1})},
                                              std::vector<at::Tensor>(9, at::ones({1, 1, 1})),
                                              std::vector<at::Tensor>(9, at::ones({1, 0, 1, 1})),
                                              std::vector<at::Tensor>(9, ints({3, -3}, {2, 1}))};
  for (const Op& op : table()) {
    for (size_t i = 0; i < odd.size(); ++i) {
      for (int opset : {7, 11, 13, kNewestOpset}) {
        NodeForTest node{.op = std::string(op.name),
                         .inputs = odd[i],
                         .opset = opset,
                         .outputs = 1 + i % 3,
                         .domain = std::string(op.domain)};
        node.attributes = {{"kernel_shape", Ints{1, 1}}, {"blocksize", int64_t(1)}, {"size", int64_t(1)},
                           {"to", int64_t(1)},           {"axis", int64_t(0)},      {"num_groups", int64_t(1)},
                           {"equation", "i,i->i"}};
        try {
          node.run(NodeForTest::Options{});
        } catch (const std::exception&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace netmend::ops
