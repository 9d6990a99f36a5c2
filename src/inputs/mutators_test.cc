#include "inputs/mutators.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "inputs/case_for_test.h"

namespace netmend::inputs {
namespace {

at::Tensor random_picture(uint64_t seed, int64_t channels, int64_t height, int64_t width) {
  return random_bytes({channels, height, width}, seed) / 255;
}

TEST(Warp, MovesByWholePixels) {
  at::Tensor picture = random_picture(1, 2, 6, 7), moved = warp(picture, {.y0 = -2, .x0 = -1});
  EXPECT_TRUE(at::allclose(moved.narrow(1, 2, 4).narrow(2, 1, 6), picture.narrow(1, 0, 4).narrow(2, 0, 6)));
  EXPECT_EQ(moved.narrow(1, 0, 2).abs().max().item<float>(), 0);
  EXPECT_EQ(moved.narrow(2, 0, 1).abs().max().item<float>(), 0);
}

TEST(Warp, TurnsByAQuarter) {
  at::Tensor picture = random_picture(2, 1, 7, 7);
  const double angle = std::numbers::pi / 2;
  at::Tensor turned = warp(picture, {std::cos(angle), -std::sin(angle), 0, std::sin(angle), std::cos(angle), 0});
  EXPECT_TRUE(at::allclose(turned, at::rot90(picture, 1, {1, 2}), 1e-4, 1e-5) ||
              at::allclose(turned, at::rot90(picture, -1, {1, 2}), 1e-4, 1e-5));
}

/// Each pixel by itself, from the definition.
TEST(Warp, EqualsATwin) {
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    at::Tensor picture = random_picture(uint64_t(round), 2, 5, 6);
    Affine m{random.uniform(0.5, 1.5),  random.uniform(-0.5, 0.5), random.uniform(-2, 2),
             random.uniform(-0.5, 0.5), random.uniform(0.5, 1.5),  random.uniform(-2, 2)};
    at::Tensor fast = warp(picture, m);
    auto pixel = [&](int64_t c, int64_t y, int64_t x) {
      return y < 0 || y >= 5 || x < 0 || x >= 6 ? 0.0 : picture[c][y][x].item<double>();
    };
    for (int64_t y = 0; y < 5; ++y)
      for (int64_t x = 0; x < 6; ++x) {
        const double sy = m.yy * (double(y) - 2) + m.yx * (double(x) - 2.5) + m.y0 + 2;
        const double sx = m.xy * (double(y) - 2) + m.xx * (double(x) - 2.5) + m.x0 + 2.5;
        const auto ty = int64_t(std::floor(sy)), tx = int64_t(std::floor(sx));
        const double fy = sy - double(ty), fx = sx - double(tx);
        for (int64_t c = 0; c < 2; ++c) {
          const double expected = (1 - fy) * ((1 - fx) * pixel(c, ty, tx) + fx * pixel(c, ty, tx + 1)) +
                                  fy * ((1 - fx) * pixel(c, ty + 1, tx) + fx * pixel(c, ty + 1, tx + 1));
          EXPECT_NEAR(fast[c][y][x].item<double>(), expected, 1e-5);
        }
      }
  }
}

TEST(Blur, EqualsConvolutionsOverMirroredEdges) {
  at::Tensor picture = random_picture(4, 3, 9, 8);
  auto convolved = [&](const at::Tensor& kernel, int64_t before, int64_t after) {
    at::Tensor padded = at::reflection_pad2d(picture.unsqueeze(1), {before, after, before, after});
    return at::conv2d(padded, kernel.unsqueeze(0).unsqueeze(0)).squeeze(1);
  };
  for (int64_t size : {3, 4, 5, 6})
    EXPECT_TRUE(at::allclose(mean_blur(picture, size),
                             convolved(at::full({size, size}, 1.0 / double(size * size)), size / 2, (size - 1) / 2),
                             1e-4, 1e-5))
        << size;
  for (auto weights : {std::vector<float>{0.25, 0.5, 0.25}, {0.0625, 0.25, 0.375, 0.25, 0.0625}}) {
    at::Tensor line = at::tensor(weights);
    EXPECT_TRUE(at::allclose(gaussian_blur(picture, line.numel()),
                             convolved(at::outer(line, line), line.numel() / 2, line.numel() / 2), 1e-4, 1e-5));
  }
  at::Tensor one = at::full({1, 1, 1}, 0.5);  // nothing to mirror
  EXPECT_TRUE(at::allclose(gaussian_blur(one, 7), one));
}

TEST(Blur, MedianIsTheMiddleOfTheNeighbours) {
  at::Tensor picture = random_picture(5, 1, 6, 6);
  for (int64_t size : {3, 5}) {
    const int64_t reach = size / 2;
    at::Tensor padded = at::replication_pad2d(picture.unsqueeze(0), {reach, reach, reach, reach}).squeeze(0);
    at::Tensor windows = padded.unfold(1, size, 1).unfold(2, size, 1).flatten(3);
    EXPECT_TRUE(at::equal(median_blur(picture, size), std::get<0>(windows.median(3))));
  }
}

TEST(Values, ContrastAndBrightnessAreClipped) {
  at::Tensor picture = at::tensor({0.f, 0.5f, 1.f}).reshape({1, 1, 3});
  EXPECT_TRUE(at::allclose(change_contrast(picture, 1.2), at::tensor({0.f, 0.6f, 1.f}).reshape({1, 1, 3})));
  EXPECT_TRUE(at::allclose(change_brightness(picture, 51), at::tensor({0.2f, 0.7f, 1.f}).reshape({1, 1, 3})));
}

TEST(Validity, IsDeepHuntersRule) {
  at::Tensor from = at::full({1, 10, 10}, 0.5);
  at::Tensor few = from.clone(), many = from.clone();
  few[0][0][0] = 1;
  EXPECT_TRUE(is_valid(from, few));  // one of a hundred, by any amount
  many[0][0][0] = 1, many[0][0][1] = 1;
  EXPECT_FALSE(is_valid(from, many));       // two are not below two in a hundred
  EXPECT_TRUE(is_valid(from, from + 0.2));  // all, by a fifth
  EXPECT_FALSE(is_valid(from, from + 0.21));
}

TEST(Mutators, StayInRangeAndAreDrawnAgain) {
  at::Tensor picture = random_picture(6, 3, 32, 28);
  for (const Mutator& mutator : mutators()) {
    int changed = 0;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Random a(seed), b(seed);
      at::Tensor first = mutator.apply(picture, a), again = mutator.apply(picture, b);
      EXPECT_TRUE(at::equal(first, again)) << mutator.name;
      EXPECT_GE(first.min().item<float>(), 0) << mutator.name;
      EXPECT_LE(first.max().item<float>(), 1 + 1e-6) << mutator.name;
      changed += !at::equal(first, picture);
    }
    EXPECT_GT(changed, 20) << mutator.name;
  }
  EXPECT_THROW(find_mutator("nothing"), std::logic_error);
}

TEST(Translate, MovesByATenthOfTheSideAndByThreePixelsAtMost) {
  EXPECT_DOUBLE_EQ(largest_shift(8, 8), 0.8);
  EXPECT_DOUBLE_EQ(largest_shift(16, 40), 2);
  EXPECT_DOUBLE_EQ(largest_shift(28, 28), 3);
  EXPECT_DOUBLE_EQ(largest_shift(224, 224), 3);
  // A bright pixel in the middle of a small picture stays within one pixel of it.
  for (int64_t side : {8, 16, 28}) {
    at::Tensor picture = at::zeros({1, side, side});
    picture[0][side / 2][side / 2] = 1;
    double farthest = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Random random(seed);
      at::Tensor moved = find_mutator("translate").apply(picture, random);
      at::Tensor places = at::nonzero(moved[0] > 1e-6);
      if (places.size(0) == 0) continue;
      at::Tensor from = (places - side / 2).to(at::kDouble) *
                        moved[0].index({places.select(1, 0), places.select(1, 1)}).to(at::kDouble).unsqueeze(1);
      farthest = std::max(farthest, from.sum(0).abs().max().item<double>());
    }
    EXPECT_LE(farthest, largest_shift(side, side) + 1e-4) << side;
    EXPECT_GT(farthest, 0.6 * largest_shift(side, side)) << side;
  }
}

TEST(Mutators, TheRuleIsKept) {
  auto test = random_case(15, 1, false, 40);
  Originals all = test->originals();
  for (const char* name :
       {"contrast", "brightness", "blur", "gaussian", "speckle", "occlusion", "pixels", "salt-pepper"}) {
    Changed made = find_method(name).make(*test->network, all, {});
    int64_t count = 0;
    for (int64_t i = 0; i < 40; ++i) {
      EXPECT_TRUE(is_valid(all.units[i], made.units[i])) << name;
      EXPECT_EQ(made.made[size_t(i)], !at::equal(all.units[i], made.units[i])) << name;
      count += made.made[size_t(i)];
    }
    Settings published;
    published.as_published = "deephunter";
    Changed loose = find_method(name).make(*test->network, all, published);
    int64_t more = 0;
    for (bool one : loose.made) more += one;
    EXPECT_GE(more, count) << name;
    EXPECT_TRUE(std::string(name) != "blur" || more > count);  // noise is never blurred a little
  }
}

}  // namespace
}  // namespace netmend::inputs
