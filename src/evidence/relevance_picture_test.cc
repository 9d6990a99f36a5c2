// Relevance as pictures and names: the scale, values that are no numbers, other sizes and layouts.
#include "evidence/relevance_picture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace netmend::evidence {
namespace {

using Pixel = std::array<int, 3>;

dataset::Display grey_input(int64_t height, int64_t width, int64_t channels = 1) {
  dataset::Display display;
  display.kind = dataset::Display::kImage, display.height = height, display.width = width, display.channels = channels;
  display.pixels.assign(size_t(height * width * channels), 100);
  return display;
}

/// The middle of a pixel of the input in one of the three panels: the input, the heat map, both.
struct Panels3 {
  dataset::Image image;
  int64_t height, width, factor;
  Panels3(const dataset::Display& input, const at::Tensor& relevance)
      : image(relevance_picture(input, relevance, "x")), height(input.height), width(input.width) {
    factor = (image.width - 10) / 3 - 10;
    factor /= width;
  }
  Pixel at(int panel, int64_t y, int64_t x) const {
    const int64_t top = (image.height - height * factor - 10 - 12) / 2;  // a line above, and one below the scale
    const int64_t row = top + y * factor + factor / 2,
                  column = 10 + panel * (width * factor + 10) + x * factor + factor / 2;
    const size_t place = size_t((row * image.width + column) * 3);
    return {image.pixels[place], image.pixels[place + 1], image.pixels[place + 2]};
  }
};
bool reddish(const Pixel& p) { return p[0] > p[2] + 60; }
bool bluish(const Pixel& p) { return p[2] > p[0] + 60; }
bool white(const Pixel& p) { return p[0] > 240 && p[1] > 240 && p[2] > 240; }

TEST(RelevancePictures, EveryPixelHasItsPlaceInAllThreePanels) {
  dataset::Display input = grey_input(3, 4);
  input.pixels[size_t(1 * 4 + 2)] = 200;
  at::Tensor relevance = at::zeros({3, 4});
  relevance[1][2] = 1, relevance[2][0] = -1;
  const Panels3 panels(input, relevance);
  EXPECT_GE(4 * panels.factor, 224) << "small inputs are enlarged";
  EXPECT_EQ(panels.at(0, 1, 2), (Pixel{200, 200, 200}));
  EXPECT_EQ(panels.at(0, 0, 0), (Pixel{100, 100, 100}));
  EXPECT_TRUE(reddish(panels.at(1, 1, 2)) && reddish(panels.at(2, 1, 2)));
  EXPECT_TRUE(bluish(panels.at(1, 2, 0)) && bluish(panels.at(2, 2, 0)));
  EXPECT_TRUE(white(panels.at(1, 0, 0)));
}

TEST(RelevancePictures, TheScaleGoesAsFarAsTheLargestValueWhicheverItIs) {
  at::Tensor relevance = at::tensor({0.0, 0.5, -1.0, 0.25}).view({2, 2});
  const Panels3 one(grey_input(2, 2), relevance), large(grey_input(2, 2), 1e9 * relevance),
      small(grey_input(2, 2), 1e-9 * relevance);
  for (int64_t y : {0, 1})
    for (int64_t x : {0, 1})
      for (int panel : {0, 1, 2}) {
        EXPECT_EQ(one.at(panel, y, x), large.at(panel, y, x));
        EXPECT_EQ(one.at(panel, y, x), small.at(panel, y, x));
      }
  EXPECT_EQ(one.at(1, 1, 0), (Pixel{33, 102, 172}));  // the end of the scale
  EXPECT_EQ(one.at(1, 0, 1), (Pixel{239, 138, 98}));  // half way
}

TEST(RelevancePictures, OfNothingAreWhite) {
  const Panels3 panels(grey_input(2, 2), at::zeros({2, 2}));
  for (int64_t y : {0, 1})
    for (int64_t x : {0, 1}) {
      EXPECT_TRUE(white(panels.at(1, y, x)));
      const Pixel both = panels.at(2, y, x);
      EXPECT_TRUE(both[0] == both[1] && both[1] == both[2]) << "the input alone, in grey";
    }
}

TEST(RelevancePictures, NanAndInfAreWhiteAndLeaveTheScaleAlone) {
  const double inf = std::numeric_limits<double>::infinity();
  const Panels3 panels(grey_input(2, 2), at::tensor({1.0, NAN, inf, -inf}).view({2, 2}));
  EXPECT_EQ(panels.at(1, 0, 0), (Pixel{178, 24, 43}));
  EXPECT_TRUE(white(panels.at(1, 0, 1)) && white(panels.at(1, 1, 0)) && white(panels.at(1, 1, 1)));
  EXPECT_TRUE(white(Panels3(grey_input(1, 1), at::full({1, 1}, NAN)).at(1, 0, 0)));
}

TEST(RelevancePictures, OfASmallerNetworkInputAreSpreadOverThePicture) {
  at::Tensor relevance = at::tensor({1.0, -1.0}).view({1, 2});
  const Panels3 panels(grey_input(4, 8), relevance);
  for (int64_t y = 0; y < 4; ++y)
    for (int64_t x = 0; x < 8; ++x) EXPECT_TRUE(x < 4 ? reddish(panels.at(1, y, x)) : bluish(panels.at(1, y, x)));
}

TEST(RelevancePictures, ColoursOfTheInputStay) {
  dataset::Display input = grey_input(1, 2, 3);
  input.pixels = {250, 10, 20, 30, 40, 220};
  const Panels3 panels(input, at::zeros({1, 2}));
  EXPECT_EQ(panels.at(0, 0, 0), (Pixel{250, 10, 20}));
  EXPECT_EQ(panels.at(0, 0, 1), (Pixel{30, 40, 220}));
}

TEST(RelevancePictures, LongCaptionsAndLargeInputsKeepTheSize) {
  const at::Tensor relevance = at::zeros({300, 2});
  const dataset::Image a = relevance_picture(grey_input(300, 2), relevance, ""),
                       b = relevance_picture(grey_input(300, 2), relevance, std::string(5000, 'w') + "\xff\xfe é");
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_GE(a.height, 300);
}

TEST(RelevancePictures, NeedAPictureAndAPlane) {
  EXPECT_THROW(relevance_picture({}, at::zeros({2, 2}), ""), std::logic_error);
  EXPECT_THROW(relevance_picture(grey_input(2, 2), at::zeros({1, 2, 2}), ""), std::logic_error);
}

TEST(RelevancePlanes, AddUpTheChannelsWhereverTheyStand) {
  dataset::Feature first, last;
  last.channels_last = true;
  const at::Tensor relevance = at::arange(24, at::kDouble).view({2, 3, 4});
  EXPECT_TRUE(at::equal(relevance_plane(first, relevance), relevance[0] + relevance[1]));
  EXPECT_TRUE(at::equal(relevance_plane(last, relevance), relevance.sum(2)));
  EXPECT_TRUE(at::equal(relevance_plane(last, relevance[0]), relevance[0])) << "a plane is one already";
}

TEST(TokenRelevance, FollowsTheMaskAndNamesWordsOnlyWhereTheyFit) {
  dataset::Feature feature;
  feature.pad = 0;
  dataset::Display text;
  text.kind = dataset::Display::kText, text.text = "one two three four";
  const at::Tensor ids = at::tensor({7, 0, 9}, at::kLong), relevance = at::tensor({0.1, 0.2, 0.3});
  // An id that pads may be a word where the mask says so.
  const auto masked = token_relevance(feature, text, ids, at::ones({3}, at::kBool), relevance);
  ASSERT_EQ(masked.size(), 3u);
  EXPECT_EQ(masked[1].name, "two") << "a text that was cut: its first words are the tokens";
  EXPECT_EQ(masked[2].relevance, 0.3);
  const auto plain = token_relevance(feature, text, ids, {}, relevance);
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].name, "#7") << "four words cannot be two tokens of a text that was not cut";
  EXPECT_EQ(plain[1].relevance, 0.3);
  EXPECT_TRUE(token_relevance(feature, text, at::zeros({3}, at::kLong), {}, relevance).empty());
}

}  // namespace
}  // namespace netmend::evidence
