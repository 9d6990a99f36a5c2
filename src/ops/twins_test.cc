// Our general implementations against LibTorch's special ones, wherever both exist, and what training changes.
#include <gtest/gtest.h>

#include "ops/node_for_test.h"

namespace netmend::ops {
namespace {

using Ints = std::vector<int64_t>;
const at::Tensor kNone;

bool close(const at::Tensor& a, const at::Tensor& b, double tolerance = 1e-5) {
  return a.sizes() == b.sizes() && at::allclose(a, b, tolerance, tolerance);
}

TEST(AveragePool, EveryPaddingEqualsLibTorch) {
  at::Tensor x = at::randn({2, 3, 7, 9});
  for (bool ceil : {false, true}) {
    for (bool count : {false, true}) {
      Attributes a = {{"kernel_shape", Ints{3, 2}},
                      {"strides", Ints{2, 2}},
                      {"pads", Ints{1, 1, 1, 1}},
                      {"ceil_mode", int64_t(ceil)},
                      {"count_include_pad", int64_t(count)}};
      EXPECT_TRUE(
          close(NodeForTest{"AveragePool", {x}, a}.run(), at::avg_pool2d(x, {3, 2}, {2, 2}, {1, 1}, ceil, count)))
          << ceil << count;
    }
  }
}

TEST(AveragePool, DilationAsAConvolution) {
  at::Tensor x = at::randn({1, 1, 9});
  at::Tensor y = NodeForTest{"AveragePool", {x}, {{"kernel_shape", Ints{3}}, {"dilations", Ints{2}}}, 19}.run();
  EXPECT_TRUE(close(y, at::conv1d(x, at::full({1, 1, 3}, 1.0 / 3), at::Tensor(), {1}, at::IntArrayRef{0}, {2})));
}

TEST(Conv, AsymmetricPaddingIsPaddingFirst) {
  at::Tensor x = at::randn({2, 3, 6, 7}), w = at::randn({4, 3, 3, 3}), b = at::randn({4});
  at::Tensor y = NodeForTest{"Conv", {x, w, b}, {{"pads", Ints{0, 1, 2, 0}}, {"strides", Ints{2, 1}}}}.run();
  EXPECT_TRUE(close(y, at::conv2d(at::constant_pad_nd(x, {1, 0, 0, 2}), w, b, {2, 1}), 1e-4));
}

TEST(Conv, TransposedIsTheGradientOfTheConvolution) {
  at::Tensor x = at::randn({1, 4, 3, 5}), w = at::randn({4, 2, 3, 2});
  at::Tensor y = NodeForTest{"ConvTranspose", {x, w}, {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 1, 0}}}}.run();
  at::Tensor input = at::zeros(y.sizes()).requires_grad_();
  (at::conv2d(input, w, {}, {2, 3}, {1, 0}) * x).sum().backward();
  EXPECT_TRUE(close(y, input.grad(), 1e-4));
}

TEST(Conv, TransposedToAGivenShape) {
  at::Tensor x = at::randn({1, 1, 3, 3}), w = at::randn({1, 2, 3, 3});
  Attributes a = {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}};
  EXPECT_EQ((NodeForTest{"ConvTranspose", {x, w}, a}.run().sizes()), (at::IntArrayRef{1, 2, 10, 8}));
  a = {{"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}};
  EXPECT_EQ((NodeForTest{"ConvTranspose", {x, w}, a}.run().sizes()), (at::IntArrayRef{1, 2, 6, 6}));
}

TEST(Conv, KeepsChannelsLast) {
  at::Tensor x = at::randn({2, 8, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast), w = at::randn({8, 8, 3, 3});
  at::Tensor y = NodeForTest{"Conv", {x, w}, {{"pads", Ints{0, 0, 1, 1}}}}.run();
  EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
}

at::Tensor resized(const at::Tensor& x, Ints sizes, Attributes attributes, int opset = 18) {
  sizes.insert(sizes.begin(), {x.size(0), x.size(1)});
  return NodeForTest{"Resize", {x, kNone, kNone, ints(sizes)}, std::move(attributes), opset}.run();
}

TEST(Resize, EqualsLibTorchUpAndDown) {
  at::Tensor x = at::randn({2, 3, 6, 7});
  for (Ints size : {Ints{12, 14}, Ints{9, 5}, Ints{3, 3}}) {
    EXPECT_TRUE(close(resized(x, size, {{"mode", "linear"}}), at::upsample_bilinear2d(x, size, false)));
    EXPECT_TRUE(close(resized(x, size, {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}}),
                      at::upsample_bilinear2d(x, size, true)));
    EXPECT_TRUE(close(resized(x, size, {{"mode", "cubic"}}), at::upsample_bicubic2d(x, size, false), 1e-4));
    EXPECT_TRUE(close(resized(x, size, {{"mode", "cubic"}, {"coordinate_transformation_mode", "align_corners"}}),
                      at::upsample_bicubic2d(x, size, true), 1e-4));
    EXPECT_TRUE(close(resized(x, size, {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}}),
                      at::upsample_nearest2d(x, size)));
    EXPECT_TRUE(
        close(resized(x, size, {{"mode", "linear"}, {"antialias", int64_t(1)}, {"exclude_outside", int64_t(1)}}),
              at::_upsample_bilinear2d_aa(x, size, false), 1e-4));
  }
}

TEST(Resize, KeepsTheAspectRatio) {
  at::Tensor x = at::randn({1, 1, 4, 8});
  Attributes a = {{"keep_aspect_ratio_policy", "not_larger"}, {"axes", Ints{2, 3}}};
  EXPECT_EQ((NodeForTest{"Resize", {x, kNone, kNone, ints({8, 8})}, a, 18}.run().sizes()),
            (at::IntArrayRef{1, 1, 4, 8}));
  a["keep_aspect_ratio_policy"] = "not_smaller";
  EXPECT_EQ((NodeForTest{"Resize", {x, kNone, kNone, ints({8, 8})}, a, 18}.run().sizes()),
            (at::IntArrayRef{1, 1, 8, 16}));
}

/// Gates of ONNX in the order that LibTorch has them.
at::Tensor reordered(const at::Tensor& rows, Ints gates) {
  std::vector<at::Tensor> parts = rows.chunk(int64_t(gates.size()), 0), list;
  for (int64_t gate : gates) list.push_back(parts[gate]);
  return at::cat(list);
}

TEST(Recurrent, LstmEqualsLibTorch) {
  at::Tensor x = at::randn({5, 3, 4}), w = at::randn({2, 24, 4}), r = at::randn({2, 24, 6}), b = at::randn({2, 48}),
             h = at::randn({2, 3, 6}), c = at::randn({2, 3, 6});
  NodeForTest node{.op = "LSTM",
                   .inputs = {x, w, r, b, kNone, h, c},
                   .attributes = {{"hidden_size", int64_t(6)}, {"direction", "bidirectional"}},
                   .outputs = 3};
  auto ours = node.run(NodeForTest::Options{});
  std::vector<at::Tensor> parameters;
  for (int d : {0, 1}) {
    for (const at::Tensor& p : {w[d], r[d], b[d].slice(0, 0, 24), b[d].slice(0, 24, 48)})
      parameters.push_back(reordered(p, {0, 2, 3, 1}));
  }
  auto [y, last_h, last_c] = at::lstm(x, {h, c}, parameters, true, 1, 0, false, true, false);
  EXPECT_TRUE(close(ours[0].transpose(1, 2).reshape({5, 3, 12}), y));
  EXPECT_TRUE(close(ours[1], last_h));
  EXPECT_TRUE(close(ours[2], last_c));
}

TEST(Recurrent, GruEqualsLibTorch) {
  at::Tensor x = at::randn({5, 3, 4}), w = at::randn({1, 18, 4}), r = at::randn({1, 18, 6}), b = at::randn({1, 36}),
             h = at::randn({1, 3, 6});
  NodeForTest node{
      .op = "GRU", .inputs = {x, w, r, b, kNone, h}, .attributes = {{"linear_before_reset", int64_t(1)}}, .outputs = 2};
  auto ours = node.run(NodeForTest::Options{});
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& p : {w[0], r[0], b[0].slice(0, 0, 18), b[0].slice(0, 18, 36)})
    parameters.push_back(reordered(p, {1, 0, 2}));
  auto [y, last] = at::gru(x, h, parameters, true, 1, 0, false, false, false);
  EXPECT_TRUE(close(ours[0].squeeze(1), y));
  EXPECT_TRUE(close(ours[1], last));
}

TEST(Recurrent, EachSequenceEndsWhereItSays) {
  at::Tensor x = at::randn({4, 2, 3}), w = at::randn({2, 5, 3}), r = at::randn({2, 5, 5});
  Attributes a = {{"direction", "bidirectional"}};
  NodeForTest both{.op = "RNN", .inputs = {x, w, r, kNone, ints({2, 4})}, .attributes = a, .outputs = 2};
  NodeForTest alone{.op = "RNN", .inputs = {x.slice(0, 0, 2).slice(1, 0, 1), w, r}, .attributes = a, .outputs = 2};
  auto together = both.run(NodeForTest::Options{}), first = alone.run(NodeForTest::Options{});
  EXPECT_TRUE(close(together[0].slice(0, 0, 2).slice(2, 0, 1), first[0]));
  EXPECT_EQ(together[0].slice(0, 2).slice(2, 0, 1).abs().sum().item<double>(), 0);
  EXPECT_TRUE(close(together[1].slice(1, 0, 1), first[1]));
}

TEST(Recurrent, BatchFirstIsTheTransposedResult) {
  at::Tensor x = at::randn({4, 2, 3}), w = at::randn({1, 20, 3}), r = at::randn({1, 20, 5}), h = at::randn({1, 2, 5});
  auto time = NodeForTest{.op = "LSTM", .inputs = {x, w, r, kNone, kNone, h}, .outputs = 3}.run(NodeForTest::Options{});
  NodeForTest turned{.op = "LSTM",
                     .inputs = {x.transpose(0, 1), w, r, kNone, kNone, h.transpose(0, 1)},
                     .attributes = {{"layout", int64_t(1)}},
                     .outputs = 3};
  auto batch = turned.run(NodeForTest::Options{});
  EXPECT_TRUE(close(batch[0], time[0].permute({2, 0, 1, 3})));
  EXPECT_TRUE(close(batch[2], time[2].transpose(0, 1)));
}

TEST(BatchNorm, TrainingUsesTheBatchAndUpdatesTheBuffers) {
  at::Tensor x = at::randn({8, 3, 4}), mean = at::zeros({3}), variance = at::ones({3});
  NodeForTest node{"BatchNormalization", {x, at::ones({3}), at::zeros({3}), mean, variance}, {{"momentum", 0.8f}}};
  at::Tensor y = node.run({.training = true})[0];
  EXPECT_TRUE(close(y.mean(at::IntArrayRef{0, 2}), at::zeros({3}), 1e-4));
  EXPECT_TRUE(close(mean, x.mean(at::IntArrayRef{0, 2}) * 0.2));
  EXPECT_TRUE(close(variance, 0.8 + x.var(at::IntArrayRef{0, 2}, true) * 0.2));
  EXPECT_ANY_THROW(
      (NodeForTest{"BatchNormalization", {at::ones({1, 3}), at::ones({3}), at::zeros({3}), mean, variance}}.run(
          {.training = true})));
}

TEST(Dropout, DropsAsManyAsAskedAndDependsOnTheSeedAlone) {
  at::Tensor x = at::ones({200, 1000});
  NodeForTest node{"Dropout", {x, reals({0.25}, {})}};
  at::Tensor y = node.run({.training = true, .seed = 5})[0];
  double dropped = (y == 0).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(dropped, 0.25, 0.005);
  EXPECT_TRUE(at::allclose(y.masked_select(y != 0), at::full({1}, 1 / 0.75)));
  EXPECT_TRUE(at::equal(y, node.run({.training = true, .seed = 5})[0]));
  EXPECT_FALSE(at::equal(y, node.run({.training = true, .seed = 6})[0]));
  EXPECT_TRUE(at::equal(node.run(), x));
  // Neighbours must not go together: rows and columns are dropped independently.
  EXPECT_NEAR((y == 0).to(at::kDouble).mean(0).max().item<double>(), 0.25, 0.15);
  at::Tensor pairs = (y.slice(1, 0, 999) == 0) & (y.slice(1, 1, 1000) == 0);
  EXPECT_NEAR(pairs.to(at::kDouble).mean().item<double>(), 0.0625, 0.005);
}

TEST(Dropout, MaskDoesNotDependOnMemoryFormat) {
  at::Tensor x = at::randn({2, 3, 4, 5});
  at::Tensor a = NodeForTest{"Dropout", {x}}.run({.training = true, .seed = 1})[0];
  at::Tensor b =
      NodeForTest{"Dropout", {x.contiguous(at::MemoryFormat::ChannelsLast)}}.run({.training = true, .seed = 1})[0];
  EXPECT_TRUE(at::equal(a, b));
}

TEST(LayerNorm, GivesMeanAndInverseDeviation) {
  at::Tensor x = at::randn({2, 3, 4});
  auto y =
      NodeForTest{.op = "LayerNormalization", .inputs = {x, at::ones({4})}, .outputs = 3}.run(NodeForTest::Options{});
  EXPECT_TRUE(close(y[1], x.mean(at::IntArrayRef{2}, true)));
  EXPECT_TRUE(close(y[2], at::rsqrt(x.var(at::IntArrayRef{2}, false, true) + 1e-5)));
}

}  // namespace
}  // namespace netmend::ops
