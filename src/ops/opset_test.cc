// The same operator under different opsets: where the file's version decides what a node means.
#include <gtest/gtest.h>

#include "ops/node_for_test.h"

namespace netmend::ops {
namespace {

using Ints = std::vector<int64_t>;
const at::Tensor kNone;

bool close(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a.to(at::kDouble), b.to(at::kDouble), 1e-5, 1e-6);
}

TEST(Opset, SoftmaxSeesAMatrixBefore13) {
  at::Tensor x = at::randn({2, 3, 4});
  NodeForTest node{.op = "Softmax", .inputs = {x}, .opset = 11};
  EXPECT_TRUE(close(node.run(), at::softmax(x.reshape({2, 12}), 1).reshape({2, 3, 4})));
  node.opset = 13;
  EXPECT_TRUE(close(node.run(), at::softmax(x, 2)));
  NodeForTest hard{.op = "Hardmax", .inputs = {x}, .opset = 11};
  EXPECT_EQ(hard.run().sum().item<double>(), 2);
  hard.opset = 13;
  EXPECT_EQ(hard.run().sum().item<double>(), 6);
}

TEST(Opset, ArgumentsMovedFromAttributesToInputs) {
  at::Tensor x = at::arange(6, at::kFloat).reshape({2, 3});
  EXPECT_TRUE(close(NodeForTest{"ReduceSum", {x}, {{"axes", Ints{1}}}, 11}.run(),
                    NodeForTest{"ReduceSum", {x, ints({1})}, {}, 13}.run()));
  EXPECT_TRUE(close(NodeForTest{"ReduceMean", {x}, {{"axes", Ints{1}}}, 17}.run(),
                    NodeForTest{"ReduceMean", {x, ints({1})}, {}, 18}.run()));
  EXPECT_TRUE(close(NodeForTest{"Clip", {x}, {{"min", 1.f}, {"max", 3.f}}, 7}.run(),
                    NodeForTest{"Clip", {x, reals({1}, {}), reals({3}, {})}, {}, 13}.run()));
  EXPECT_TRUE(close(NodeForTest{"Slice", {x}, {{"starts", Ints{1}}, {"ends", Ints{3}}, {"axes", Ints{1}}}, 9}.run(),
                    x.slice(1, 1, 3)));
  EXPECT_TRUE(close(NodeForTest{"Unsqueeze", {x}, {{"axes", Ints{0}}}, 11}.run(), x.unsqueeze(0)));
  EXPECT_TRUE(close(NodeForTest{"Squeeze", {x.unsqueeze(0)}, {{"axes", Ints{0}}}, 11}.run(), x));
  EXPECT_TRUE(close(NodeForTest{"Pad", {x}, {{"pads", Ints{0, 1, 0, 0}}, {"value", 9.f}}, 7}.run(),
                    at::constant_pad_nd(x, {1, 0}, 9)));
  EXPECT_TRUE(close(NodeForTest{"Pad", {x, ints({1, 0}), reals({9}, {}), ints({1})}, {}, 18}.run(),
                    at::constant_pad_nd(x, {1, 0}, 9)));
  EXPECT_TRUE(close(NodeForTest{.op = "TopK", .inputs = {x}, .attributes = {{"k", int64_t(2)}}, .opset = 9}.run(),
                    reals({2, 1, 5, 4}, {2, 2})));
  EXPECT_TRUE(close(NodeForTest{"Upsample", {x}, {{"scales", std::vector<float>{1, 2}}}, 7}.run(),
                    NodeForTest{"Upsample", {x, reals({1, 2})}, {}, 9}.run()));
}

TEST(Opset, SplitIntoEqualOrUnequalParts) {
  at::Tensor x = at::arange(5, at::kFloat);
  NodeForTest uneven{
      .op = "Split", .inputs = {x}, .attributes = {{"num_outputs", int64_t(2)}}, .opset = 18, .outputs = 2};
  EXPECT_TRUE(at::equal(uneven.run(NodeForTest::Options{})[1], reals({3, 4})));
  NodeForTest old{.op = "Split", .inputs = {x}, .attributes = {{"split", Ints{4, 1}}}, .opset = 11, .outputs = 2};
  EXPECT_TRUE(at::equal(old.run(NodeForTest::Options{})[1], reals({4})));
}

TEST(Opset, ReductionOverNoAxes) {
  at::Tensor x = reals({1, -2});
  EXPECT_TRUE(close(NodeForTest{"ReduceSum", {x, at::empty({0}, at::kLong)}}.run(), reals({-1})));
  EXPECT_TRUE(
      close(NodeForTest{"ReduceSum", {x, at::empty({0}, at::kLong)}, {{"noop_with_empty_axes", int64_t(1)}}}.run(), x));
  EXPECT_TRUE(
      close(NodeForTest{"ReduceSumSquare", {x}, {{"noop_with_empty_axes", int64_t(1)}}, 18}.run(), reals({1, 4})));
}

TEST(Opset, ReductionOfNothing) {
  at::Tensor none = at::empty({2, 0, 3});
  EXPECT_TRUE(at::equal(NodeForTest{"ReduceMax", {none, ints({1})}, {{"keepdims", int64_t(0)}}, 20}.run(),
                        at::full({2, 3}, -std::numeric_limits<double>::infinity())));
  EXPECT_TRUE(at::equal(NodeForTest{"ReduceProd", {none, ints({1})}, {}, 18}.run(), at::ones({2, 1, 3})));
}

TEST(Opset, ReshapeMayAllowZero) {
  at::Tensor none = at::empty({0, 3});
  EXPECT_EQ((NodeForTest{"Reshape", {none, ints({3, 0})}, {{"allowzero", int64_t(1)}}, 14}.run().sizes()),
            (at::IntArrayRef{3, 0}));
  EXPECT_EQ((NodeForTest{"Reshape", {at::ones({2, 3}), ints({0, -1})}}.run().sizes()), (at::IntArrayRef{2, 3}));
}

TEST(Opset, GroupNormScaleIsForGroupsThenForChannels) {
  at::Tensor x = at::randn({2, 4, 3}), scale = reals({2, 3}), bias = reals({0, 1});
  at::Tensor old = NodeForTest{"GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t(2)}}, 18}.run();
  at::Tensor now =
      NodeForTest{"GroupNormalization", {x, reals({2, 2, 3, 3}), reals({0, 0, 1, 1})}, {{"num_groups", int64_t(2)}}, 21}
          .run();
  EXPECT_TRUE(close(old, now));
}

TEST(Opset, BatchNormOfEachElementBefore9) {
  at::Tensor x = at::randn({2, 2, 3}), mean = at::randn({2, 3}), one = at::ones({2, 3}), zero = at::zeros({2, 3});
  at::Tensor y =
      NodeForTest{"BatchNormalization", {x, one, zero, mean, one}, {{"spatial", int64_t(0)}, {"epsilon", 0.f}}, 7}
          .run();
  EXPECT_TRUE(close(y, x - mean));
}

TEST(Opset, ResizeOfTenIsAsymmetric) {
  at::Tensor x = reals({1, 2, 3, 4}, {1, 1, 4});
  EXPECT_TRUE(close(NodeForTest{"Resize", {x, reals({1, 1, 2})}, {{"mode", "linear"}}, 10}.run(),
                    reals({1, 1.5, 2, 2.5, 3, 3.5, 4, 4}, {1, 1, 8})));
  at::Tensor half = NodeForTest{"Resize", {x, kNone, reals({1, 1, 2})}, {{"mode", "linear"}}, 11}.run();
  EXPECT_TRUE(close(half, reals({1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4}, {1, 1, 8})));
}

TEST(Opset, ModWithoutFmodOnFloats) {
  EXPECT_TRUE(close(NodeForTest{"Mod", {reals({-5, 5}), reals({3, -3})}, {}, 28}.run(), reals({1, -1})));
  EXPECT_TRUE(
      close(NodeForTest{"Mod", {reals({-5, 5}), reals({3, -3})}, {{"fmod", int64_t(1)}}, 10}.run(), reals({-2, 2})));
}

TEST(Opset, SpaceToDepthHasAModeSince28) {
  at::Tensor x = at::arange(32, at::kFloat).reshape({1, 2, 4, 4});
  for (const char* mode : {"DCR", "CRD"}) {
    at::Tensor deep = NodeForTest{"SpaceToDepth", {x}, {{"blocksize", int64_t(2)}, {"mode", mode}}, 28}.run();
    EXPECT_TRUE(at::equal(NodeForTest{"DepthToSpace", {deep}, {{"blocksize", int64_t(2)}, {"mode", mode}}}.run(), x))
        << mode;
  }
}

TEST(Opset, DropoutMaskHadTheTypeOfTheData) {
  NodeForTest node{.op = "Dropout", .inputs = {at::ones({2})}, .opset = 7, .outputs = 2};
  EXPECT_EQ(node.run(NodeForTest::Options{})[1].scalar_type(), at::kFloat);
  node.opset = 13;
  EXPECT_EQ(node.run(NodeForTest::Options{})[1].scalar_type(), at::kBool);
}

TEST(Cast, RoundsThroughHalfAndWrapsUnsigned) {
  auto cast = [](const at::Tensor& x, int64_t to) { return NodeForTest{"Cast", {x}, {{"to", to}}}.run(); };
  at::Tensor half = cast(reals({1.0001, 70000}), 10);
  EXPECT_EQ(half.scalar_type(), at::kFloat);
  EXPECT_EQ(half[0].item<float>(), 1);
  EXPECT_TRUE(std::isinf(half[1].item<float>()));
  EXPECT_EQ(cast(ints({-1}), 4)[0].item<int64_t>(), 65535);
  EXPECT_EQ(cast(ints({-1}), 12)[0].item<int64_t>(), 4294967295);
  EXPECT_TRUE(at::equal(cast(reals({0, 0.1, -2}), 9), bools({0, 1, 1})));
  EXPECT_EQ(cast(reals({2.7}), 7)[0].item<int64_t>(), 2);
}

TEST(Quantize, BlocksHaveTheirOwnScale) {
  at::Tensor x = reals({1, 2, 3, 4, 5}, {1, 5}), scale = reals({1, 2, 0.5}, {1, 3});
  Attributes blocked = {{"axis", int64_t(1)}, {"block_size", int64_t(2)}};
  at::Tensor q = NodeForTest{"QuantizeLinear", {x, scale}, blocked, 21}.run();
  EXPECT_TRUE(at::equal(q, at::tensor({1, 2, 2, 2, 10}, at::kByte).reshape({1, 5})));
  EXPECT_TRUE(close(NodeForTest{"DequantizeLinear", {q, scale}, blocked, 21}.run(), reals({1, 2, 4, 4, 5}, {1, 5})));
}

TEST(Division, OfIntegersGoesTowardsZero) {
  EXPECT_TRUE(at::equal(NodeForTest{"Div", {ints({7, -7, 7, -7}), ints({2, 2, -2, -2})}}.run(), ints({3, -3, -3, 3})));
  EXPECT_TRUE(at::equal(NodeForTest{"Mod", {ints({7, -7, 7, -7}), ints({2, 2, -2, -2})}}.run(), ints({1, 1, -1, -1})));
  EXPECT_TRUE(at::equal(NodeForTest{"Mod", {ints({-7}), ints({4})}, {{"fmod", int64_t(1)}}}.run(), ints({-3})));
}

TEST(TopK, EqualValuesKeepTheirOrder) {
  NodeForTest node{.op = "TopK", .inputs = {reals({1, 3, 3, 3, 0}), ints({2})}, .outputs = 2};
  EXPECT_TRUE(at::equal(node.run(NodeForTest::Options{})[1], ints({1, 2})));
  node.attributes["largest"] = int64_t(0);
  EXPECT_TRUE(at::equal(node.run(NodeForTest::Options{})[1], ints({4, 0})));
}

}  // namespace
}  // namespace netmend::ops
