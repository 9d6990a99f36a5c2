#include "evidence/relevance_picture.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataset/lettering.h"
#include "dataset/words.h"

namespace netmend::evidence {
namespace {

using dataset::Image;
using Colour = std::array<double, 3>;

constexpr int64_t kPanel = 224;  ///< what the longer side of a panel is enlarged to, at least
constexpr int64_t kGap = 10, kLine = 2 * kGap + dataset::kLetterHeight, kBar = 12;
constexpr uint8_t kGround = 250, kInk = 60;

/// Blue, white, red; even steps look even, and both ends are as dark.
Colour diverging(double value) {
  constexpr std::array<Colour, 3> up = {{{247, 247, 247}, {239, 138, 98}, {178, 24, 43}}};
  constexpr std::array<Colour, 3> down = {{{247, 247, 247}, {103, 169, 207}, {33, 102, 172}}};
  const auto& side = value < 0 ? down : up;
  double at = 2 * std::min(1.0, std::abs(value));
  auto left = size_t(std::min(1.0, std::floor(at)));
  double part = at - double(left);
  Colour colour;
  for (size_t c = 0; c < 3; ++c) colour[c] = (1 - part) * side[left][c] + part * side[left + 1][c];
  return colour;
}

void set(Image& image, int64_t y, int64_t x, const Colour& colour) {
  for (size_t c = 0; c < 3; ++c)
    image.pixels[size_t((y * image.width + x) * 3) + c] = uint8_t(std::lround(std::clamp(colour[c], 0.0, 255.0)));
}

/// The three panels, pixel by pixel of the input.
struct Panels {
  const dataset::Display& input;
  std::vector<double> values;  ///< of the input's pixels, −1 … 1
  Colour pixel(int64_t y, int64_t x) const {
    Colour colour;
    for (int64_t c = 0; c < 3; ++c)
      colour[size_t(c)] = input.pixels[size_t((y * input.width + x) * input.channels + (input.channels == 3 ? c : 0))];
    return colour;
  }
  double value(int64_t y, int64_t x) const { return values[size_t(y * input.width + x)]; }
  Colour heat(int64_t y, int64_t x) const { return diverging(value(y, x)); }
  /// Grey and pale below, coloured where it matters.
  Colour overlay(int64_t y, int64_t x) const {
    Colour own = pixel(y, x), heat = diverging(value(y, x) < 0 ? -1 : 1);
    double grey = 90 + 0.6 * (0.299 * own[0] + 0.587 * own[1] + 0.114 * own[2]);
    double weight = std::pow(std::abs(value(y, x)), 0.75);
    Colour colour;
    for (size_t c = 0; c < 3; ++c) colour[c] = (1 - weight) * grey + weight * heat[c];
    return colour;
  }
};

/// Relevance at each pixel of the picture, which may be larger than what the network sees.
std::vector<double> spread(const dataset::Display& input, const at::Tensor& relevance, double most) {
  at::Tensor plane = relevance.to(at::kDouble).contiguous();
  const int64_t rows = plane.size(0), columns = plane.size(1);
  std::vector<double> values;
  for (int64_t y = 0; y < input.height; ++y)
    for (int64_t x = 0; x < input.width; ++x) {
      double value = plane.data_ptr<double>()[y * rows / input.height * columns + x * columns / input.width];
      values.push_back(most > 0 && std::isfinite(value) ? value / most : 0);
    }
  return values;
}

void draw_scale(Image& image, int64_t top, int64_t left, int64_t width, double most) {
  for (int64_t x = 0; x < width; ++x)
    for (int64_t y = 0; y < kBar; ++y)
      set(image, top + y, left + x, diverging(2.0 * double(x) / double(width - 1) - 1));
  std::string end = fmt::format("{:.2g}", most);
  const int64_t below = top + kBar + 6;
  draw_text(image, below, left, "-" + end, kInk);
  draw_text(image, below, left + (width - dataset::text_width("0")) / 2, "0", kInk);
  draw_text(image, below, left + width - dataset::text_width(end), end, kInk);
}

}  // namespace

Image relevance_picture(const dataset::Display& input, const at::Tensor& relevance, const std::string& caption) {
  check(input.kind == dataset::Display::kImage && relevance.dim() == 2, "a picture needs an image and a plane");
  const double most = relevance.abs().nan_to_num(0, 0, 0).max().item<double>();
  Panels panels{input, spread(input, relevance, most)};
  const int64_t longer = std::max(input.height, input.width),
                factor = std::max<int64_t>(1, (kPanel + longer - 1) / longer);
  const int64_t height = input.height * factor, width = input.width * factor, step = width + kGap;
  Image image{kLine + height + kGap + kBar + kLine, kGap + 3 * step, 3, {}};
  image.pixels.assign(size_t(image.height * image.width * 3), kGround);
  draw_text(image, kGap, kGap, caption, kInk);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      set(image, kLine + y, kGap + x, panels.pixel(y / factor, x / factor));
      set(image, kLine + y, kGap + step + x, panels.heat(y / factor, x / factor));
      set(image, kLine + y, kGap + 2 * step + x, panels.overlay(y / factor, x / factor));
    }
  draw_scale(image, kLine + height + kGap, kGap + step, width, most);
  return image;
}

at::Tensor relevance_plane(const dataset::Feature& feature, const at::Tensor& relevance) {
  if (relevance.dim() == 2) return relevance;
  return relevance.sum(feature.channels_last ? 2 : 0);
}

std::vector<NamedRelevance> token_relevance(const dataset::Feature& feature, const dataset::Display& text,
                                            const at::Tensor& ids, const at::Tensor& mask,
                                            const at::Tensor& relevance) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < ids.size(0); ++i) {
    const bool counts = mask.defined() ? mask[i].item<bool>() : ids[i].item<int64_t>() != feature.pad;
    if (counts) places.push_back(i);
  }
  // The reader's own way to cut a text is not known here; either of the two usual ones that gives as many words is it.
  std::vector<std::string> words;
  if (text.kind == dataset::Display::kText)
    for (const std::string& form : {text.text, dataset::clean_sentence(text.text)}) {
      words = dataset::words_of(form, false);
      if (words.size() == places.size() || (words.size() > places.size() && int64_t(places.size()) == ids.size(0)))
        break;
      words.clear();
    }
  std::vector<NamedRelevance> named;
  for (size_t i = 0; i < places.size(); ++i) {
    auto id = ids[places[i]].item<int64_t>();
    named.push_back({i < words.size() ? words[i] : fmt::format("#{}", id), relevance[places[i]].item<double>()});
  }
  return named;
}

std::vector<NamedRelevance> column_relevance(const dataset::Feature& feature, const at::Tensor& relevance) {
  at::Tensor flat = relevance.reshape({-1});
  std::vector<NamedRelevance> named;
  for (int64_t i = 0; i < flat.size(0); ++i) {
    std::string name =
        size_t(i) < feature.columns.size() ? feature.columns[size_t(i)] : fmt::format("{}[{}]", feature.name, i);
    named.push_back({name, flat[i].item<double>()});
  }
  std::stable_sort(named.begin(), named.end(), [](const NamedRelevance& a, const NamedRelevance& b) {
    return std::abs(a.relevance) > std::abs(b.relevance);
  });
  return named;
}

}  // namespace netmend::evidence
