// The own loops against LibTorch's pooling, on random shapes, strides, paddings and values.
#include "ops/max_pool.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"
#include "ops/node_for_test.h"

namespace netmend::ops {
namespace {

struct Case {
  at::Tensor x;
  Window window;
};

int64_t pick(Random& random, int64_t low, int64_t high) { return low + int64_t(random.below(high - low + 1)); }

/// Symmetric padding of at most half a kernel is all that LibTorch takes.
Case random_case(Random& random, size_t rank, at::ScalarType type) {
  Window w;
  std::vector<int64_t> shape = {pick(random, 1, 3), pick(random, 1, 9)};
  for (size_t i = 0; i < rank; ++i) {
    w.kernel.push_back(pick(random, 1, 4));
    w.stride.push_back(pick(random, 1, 3));
    w.dilation.push_back(pick(random, 1, 2));
    w.begin.push_back(pick(random, 0, w.kernel[i] / 2));
    w.end.push_back(w.begin[i]);
    shape.push_back(pick(random, w.span(i), w.span(i) + 12));
    w.output.push_back((shape.back() + 2 * w.begin[i] - w.span(i)) / w.stride[i] + 1);
  }
  at::Tensor x = at::randn(shape, type);
  if (random.below(2)) x = at::round(x);  // ties
  if (random.below(2)) x.masked_fill_(at::rand(shape) < 0.05, std::numeric_limits<double>::quiet_NaN());
  if (random.below(2)) x.masked_fill_(at::rand(shape) < 0.2, -std::numeric_limits<double>::infinity());
  if (rank == 2 && random.below(2)) x = x.contiguous(at::MemoryFormat::ChannelsLast);
  return {x, w};
}

at::Tensor torch_pool(const at::Tensor& x, const Window& w) {
  if (w.rank() == 1) return at::max_pool1d(x, w.kernel, w.stride, w.begin, w.dilation);
  if (w.rank() == 2) return at::max_pool2d(x, w.kernel, w.stride, w.begin, w.dilation);
  return at::max_pool3d(x, w.kernel, w.stride, w.begin, w.dilation);
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::all((a == b) | (a.isnan() & b.isnan())).item<bool>();
}

TEST(MaxPool, EqualsLibTorch) {
  at::manual_seed(1);
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    Case c = random_case(random, 1 + i % 3, i % 2 ? at::kFloat : at::kDouble);
    at::Tensor y = max_pool(c.x, c.window);
    ASSERT_TRUE(same(y, torch_pool(c.x, c.window))) << i;
    EXPECT_EQ(c.x.dim() == 4 && !c.x.is_contiguous(),
              c.x.dim() == 4 && !y.is_contiguous() && y.size(1) > 1 && y[0][0].numel() > 1)
        << "memory format, case " << i;
  }
}

TEST(MaxPool, TwoByTwoEqualsLibTorch) {
  at::manual_seed(2);
  for (int64_t size : {2, 3, 5, 8, 28, 33}) {
    Window w{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {size / 2, size / 2}};
    at::Tensor x = at::randn({2, 3, size, size});
    x.masked_fill_(at::rand(x.sizes()) < 0.05, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(same(max_pool(x, w), torch_pool(x, w))) << size;
  }
}

TEST(MaxPool, ReadsAnyStrides) {
  at::Tensor x = at::randn({5, 4, 6, 2}).permute({0, 3, 1, 2}).slice(2, 0, 4, 1);
  Window w{{2, 3}, {1, 2}, {1, 1}, {0, 1}, {0, 1}, {3, 3}};
  EXPECT_TRUE(same(max_pool(x, w), torch_pool(x, w)));
}

at::Tensor gradient(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weights) {
  (y * weights).sum().backward();
  at::Tensor g = x.grad().clone();
  x.mutable_grad().reset();
  return g;
}

TEST(MaxPool, GradientEqualsLibTorch) {
  at::manual_seed(3);
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    Case c = random_case(random, 1 + i % 3, i % 2 ? at::kFloat : at::kDouble);
    at::Tensor x = at::where(c.x.isfinite(), c.x, at::zeros({}, c.x.options())).requires_grad_();
    if (i % 7 == 0) c.window = {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {x.size(-2) / 2, x.size(-1) / 2}};
    if (c.window.rank() != size_t(x.dim()) - 2 || c.window.output.back() == 0) continue;
    at::Tensor y = max_pool_tracked(x, c.window), weights = at::randn_like(y);
    at::Tensor own = gradient(x, y, weights), theirs = gradient(x, torch_pool(x, c.window), weights);
    ASSERT_TRUE(at::allclose(own, theirs, 1e-5, 1e-6)) << i;
  }
}

TEST(MaxPool, HasAGradientOfTheGradient) {
  at::Tensor x = at::randn({1, 2, 4, 4}, at::kDouble).requires_grad_();
  Window w{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {2, 2}};
  auto second = [&](const at::Tensor& y) {
    (y * y).sum().backward({}, true, true);
    at::Tensor g = x.grad();
    x.mutable_grad().reset();
    (g * g).sum().backward();
    return gradient(x, x.sum(), at::zeros({}, at::kDouble)) * 1.0;
  };
  at::Tensor own = second(max_pool_tracked(x, w)), theirs = second(torch_pool(x, w));
  EXPECT_TRUE(at::allclose(own, theirs));
}

TEST(MaxPool, AsymmetricPaddingAndCeilMode) {
  at::Tensor x = at::arange(1, 13, at::kFloat).reshape({1, 1, 3, 4});
  NodeForTest node{"MaxPool",
                   {x},
                   {{"kernel_shape", std::vector<int64_t>{2, 2}},
                    {"strides", std::vector<int64_t>{2, 2}},
                    {"pads", std::vector<int64_t>{1, 0, 0, 1}}}};
  EXPECT_TRUE(at::equal(node.run(), reals({2, 4, 10, 12}, {1, 1, 2, 2})));
  node.attributes["pads"] = std::vector<int64_t>{0, 0, 0, 0};
  node.attributes["ceil_mode"] = int64_t(1);
  EXPECT_TRUE(at::equal(node.run(), reals({6, 8, 10, 12}, {1, 1, 2, 2})));
}

TEST(MaxPool, IndicesCountOverTheWholeTensor) {
  at::Tensor x = at::arange(32, at::kFloat).reshape({2, 1, 4, 4});
  NodeForTest node{
      .op = "MaxPool",
      .inputs = {x},
      .attributes = {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}},
      .outputs = 2};
  EXPECT_TRUE(at::equal(node.run(NodeForTest::Options{})[1].reshape({-1}), ints({5, 7, 13, 15, 21, 23, 29, 31})));
  node.attributes["storage_order"] = int64_t(1);
  EXPECT_TRUE(at::equal(node.run(NodeForTest::Options{})[1].reshape({-1}), ints({5, 13, 7, 15, 21, 29, 23, 31})));
}

TEST(MaxPool, TakesBytes) {
  NodeForTest node{"MaxPool",
                   {at::tensor({1, 200, 3, 4}, at::kByte).reshape({1, 1, 4})},
                   {{"kernel_shape", std::vector<int64_t>{2}}}};
  EXPECT_TRUE(at::equal(node.run(), at::tensor({200, 200, 4}, at::kByte).reshape({1, 1, 3})));
}

}  // namespace
}  // namespace netmend::ops
