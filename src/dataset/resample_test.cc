#include "dataset/resample.h"

#include <gtest/gtest.h>

namespace netmend::dataset {
namespace {

constexpr int64_t kHeight = 7, kWidth = 9;

/// A picture without order, so that every weight counts.
std::vector<uint8_t> picture(int64_t channels) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < kHeight; ++y)
    for (int64_t x = 0; x < kWidth; ++x)
      for (int64_t c = 0; c < channels; ++c) pixels.push_back(uint8_t((x * 37 + y * 59 + c * 83 + x * y * 11) % 256));
  return pixels;
}

struct Case {
  const char* filter;
  int64_t height, width, channels;
  std::vector<uint8_t> expected;
};

/// What Pillow 13.0 makes of that picture: Image.resize((width, height), filter).
const std::vector<Case> kPillow = {
    {"bilinear", 3, 4, 3, {89,  138, 131, 145, 136, 111, 141, 120, 109, 102, 115, 129, 161, 96,  129, 137, 129, 127,
                           117, 133, 134, 125, 139, 139, 127, 128, 119, 142, 143, 138, 157, 134, 122, 104, 158, 139}},
    {"bilinear", 10, 5, 1, {21,  79,  148, 169, 37,  57,  124, 172, 123, 105, 103, 162, 168, 104, 136, 149, 163,
                            103, 157, 68,  183, 134, 126, 106, 142, 183, 130, 129, 103, 151, 151, 152, 110, 152,
                            88,  108, 154, 140, 149, 84,  113, 134, 170, 146, 96,  139, 109, 194, 143, 113}},
    {"bicubic", 3, 4, 3, {81,  137, 134, 148, 141, 110, 146, 118, 104, 98,  112, 132, 169, 93,  128, 135, 128, 127,
                          114, 136, 134, 125, 140, 141, 124, 128, 119, 144, 147, 139, 162, 130, 123, 101, 160, 137}},
    {"bicubic", 10, 5, 1, {12, 75,  151, 185, 16,  45,  128, 181, 118, 107, 98,  176, 175, 90,  150, 151, 164,
                           94, 170, 54,  197, 129, 122, 97,  154, 195, 125, 132, 86,  170, 148, 153, 110, 155,
                           79, 97,  158, 139, 159, 73,  109, 134, 175, 151, 93,  144, 106, 200, 142, 113}},
    {"lanczos", 3, 4, 3, {78,  135, 133, 151, 142, 110, 147, 118, 98,  96,  110, 136, 173, 95,  127, 136, 126, 127,
                          111, 138, 135, 127, 141, 141, 120, 127, 124, 145, 150, 137, 165, 127, 126, 99,  159, 137}},
    {"lanczos", 10, 5, 1, {12, 71,  151, 192, 6,   38,  129, 189, 110, 114, 98,  189, 174, 85,  155, 156, 165,
                           89, 173, 51,  202, 129, 114, 99,  153, 194, 126, 138, 71,  186, 143, 152, 117, 152,
                           78, 96,  159, 132, 174, 59,  113, 132, 176, 154, 93,  144, 110, 202, 136, 117}},
    {"nearest", 3, 4, 3, {107, 190, 17,  203, 30,  113, 43,  126, 209, 139, 222, 49,  247, 74, 157, 131, 214, 41,
                          15,  98,  181, 155, 238, 65,  131, 214, 41,  59,  142, 225, 243, 70, 153, 171, 254, 81}},
    {"nearest", 10, 5, 1, {0,   74,  148, 222, 40, 59,  155, 251, 91,  187, 59,  155, 251, 91,  187, 118, 236,
                           98,  216, 78,  177, 61, 201, 85,  225, 177, 61,  201, 85,  225, 236, 142, 48,  210,
                           116, 39,  223, 151, 79, 7,   39,  223, 151, 79,  7,   98,  48,  254, 204, 154}},
};

TEST(Resample, GivesPillowsBytes) {
  for (const Case& wanted : kPillow) {
    std::vector<uint8_t> pixels = picture(wanted.channels);
    Resize resize;
    resize.height = wanted.height, resize.width = wanted.width, resize.filter = wanted.filter;
    EXPECT_EQ(resample(interleaved<uint8_t>(pixels.data(), kHeight, kWidth, wanted.channels), resize), wanted.expected)
        << wanted.filter << " " << wanted.height << "x" << wanted.width;
  }
}

TEST(Resample, ShorterSideThenMiddle) {
  std::vector<uint8_t> pixels = picture(3);
  Resize resize;
  resize.shorter = 5, resize.crop = 4;
  const std::vector<uint8_t> pillow = {92,  166, 153, 151, 158, 80,  157, 98,  115, 131, 100, 107, 172, 116, 98,  140,
                                       106, 129, 132, 161, 106, 125, 129, 95,  141, 123, 162, 137, 134, 106, 100, 118,
                                       134, 116, 148, 166, 146, 151, 116, 135, 125, 155, 148, 152, 118, 136, 127, 157};
  EXPECT_EQ(resample(interleaved<uint8_t>(pixels.data(), kHeight, kWidth, 3), resize), pillow);
  EXPECT_EQ(resized(kHeight, kWidth, resize), std::pair(int64_t(4), int64_t(4)));
}

TEST(Resample, FloatsAsPillowsModeF) {
  std::vector<float> values;
  for (uint8_t value : picture(1)) values.push_back(float(value) / 16);
  Resize resize;
  resize.height = 3, resize.width = 4, resize.filter = "bicubic";
  const std::vector<float> pillow = {5.05656, 9.27569, 9.12241, 6.12421, 10.55889, 8.42281,
                                     7.15363, 7.82987, 7.75023, 8.99063, 10.13557, 6.30021};
  std::vector<float> got = resample(interleaved<float>(values.data(), kHeight, kWidth, 1), resize);
  ASSERT_EQ(got.size(), pillow.size());
  for (size_t i = 0; i < pillow.size(); ++i) EXPECT_NEAR(got[i], pillow[i], 2e-5);
}

TEST(Resample, PlanesAndPixelsGiveTheSame) {
  std::vector<uint8_t> pixels = picture(3), planes;
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t i = 0; i < kHeight * kWidth; ++i) planes.push_back(pixels[size_t(i * 3 + c)]);
  Resize resize;
  resize.height = 5, resize.width = 12;
  EXPECT_EQ(resample(planar<uint8_t>(planes.data(), kHeight, kWidth, 3), resize),
            resample(interleaved<uint8_t>(pixels.data(), kHeight, kWidth, 3), resize));
}

TEST(Resample, WithoutAntialiasOnlyNeighboursCount) {
  const std::vector<float> step = {0, 0, 0, 0, 8, 0, 0, 0};  // averaged away with antialiasing, seen or missed without
  Resize resize;
  resize.height = 1, resize.width = 2;
  std::vector<float> smooth = resample(interleaved<float>(step.data(), 1, 8, 1), resize);
  resize.antialias = false;
  std::vector<float> sharp = resample(interleaved<float>(step.data(), 1, 8, 1), resize);
  EXPECT_GT(smooth[1], 0);
  EXPECT_EQ(sharp[1], 0);  // torch: interpolate(mode="bilinear", antialias=False) takes values 5 and 6
}

}  // namespace
}  // namespace netmend::dataset
