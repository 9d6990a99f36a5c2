#include "inputs/sheet.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "dataset/lettering.h"
#include "dataset/resample.h"

namespace netmend::inputs {
namespace {

using dataset::Image;

constexpr int64_t kSmallest = 56, kLargest = 160, kGap = 4, kColumns = 4;
constexpr uint8_t kGround = 40, kInk = 230;

/// Units of one input as rows × columns × 3 bytes.
Image picture(const at::Tensor& units, const Subject& changed, bool blue_first) {
  at::Tensor pixels = changed.about.channels_last ? units : units.permute({1, 2, 0});
  if (pixels.size(2) >= 3) {
    pixels = pixels.narrow(2, 0, 3);
    if (blue_first) pixels = pixels.flip({2});
  } else {
    pixels = pixels.narrow(2, 0, 1).expand({pixels.size(0), pixels.size(1), 3});
  }
  pixels = (pixels * 255).round().clamp(0, 255).to(at::kByte).contiguous();
  Image image{pixels.size(0), pixels.size(1), 3, {}};
  image.pixels.assign(pixels.data_ptr<uint8_t>(), pixels.data_ptr<uint8_t>() + pixels.numel());
  return image;
}

Image fitted(Image image) {
  const int64_t longer = std::max(image.height, image.width);
  const int64_t times = longer >= kSmallest ? 1 : (kSmallest + longer - 1) / longer;
  if (times == 1 && longer <= kLargest) return image;
  const double scale = longer > kLargest ? double(kLargest) / double(longer) : double(times);
  dataset::Resize resize;
  resize.filter = times > 1 ? "nearest" : "bilinear";
  resize.height = std::max<int64_t>(1, int64_t(double(image.height) * scale));
  resize.width = std::max<int64_t>(1, int64_t(double(image.width) * scale));
  image.pixels =
      dataset::resample(dataset::interleaved<uint8_t>(image.pixels.data(), image.height, image.width, 3), resize);
  image.height = resize.height, image.width = resize.width;
  return image;
}

void paste(Image& sheet, const Image& image, int64_t top, int64_t left) {
  for (int64_t y = 0; y < image.height; ++y)
    std::copy_n(image.pixels.begin() + y * image.width * 3, image.width * 3,
                sheet.pixels.begin() + ((top + y) * sheet.width + left) * 3);
}

/// As much as makes the largest difference fill half of the range, in whole steps.
int64_t strength(const at::Tensor& off) {
  const double most = off.abs().max().item<double>();
  return most > 0 ? std::clamp<int64_t>(int64_t(std::floor(0.5 / most)), 1, 64) : 1;
}

}  // namespace

Image change_sheet(const std::vector<Shown>& shown, const Subject& changed, bool blue_first) {
  check(!shown.empty() && changed.kind == Kind::kImage, "a sheet needs images");
  std::vector<std::vector<Image>> triples;
  std::vector<std::string> captions;
  for (const Shown& one : shown) {
    at::Tensor off = one.after - one.before;
    const int64_t times = strength(off);
    triples.push_back({fitted(picture(one.before, changed, blue_first)),
                       fitted(picture(one.after, changed, blue_first)),
                       fitted(picture(off * double(times) + 0.5, changed, blue_first))});
    captions.push_back(fmt::format("×{} {}", times, one.caption));
  }
  const int64_t height = triples[0][0].height, width = triples[0][0].width;
  int64_t longest = 0;  // captions are never cut
  for (const std::string& caption : captions) longest = std::max(longest, dataset::text_width(caption));
  const int64_t line = dataset::kLetterHeight + 2 * kGap, cell = std::max(3 * width + 2, longest) + 3 * kGap;
  const int64_t columns = std::min<int64_t>(kColumns, int64_t(triples.size()));
  const int64_t rows = (int64_t(triples.size()) + columns - 1) / columns;
  Image sheet{kGap + rows * (height + line + kGap), kGap + columns * cell, 3, {}};
  sheet.pixels.assign(size_t(sheet.height * sheet.width * 3), kGround);
  for (size_t i = 0; i < triples.size(); ++i) {
    const int64_t top = kGap + int64_t(i) / columns * (height + line + kGap), left = kGap + int64_t(i) % columns * cell;
    draw_text(sheet, top + kGap, left, captions[i], kInk);
    for (int64_t part = 0; part < 3; ++part)
      paste(sheet, triples[i][size_t(part)], top + line, left + part * (width + 1));
  }
  return sheet;
}

}  // namespace netmend::inputs
