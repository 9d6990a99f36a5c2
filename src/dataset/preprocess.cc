#include "dataset/preprocess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataset/options.h"

namespace netmend::dataset {
namespace {

using Options = std::map<std::string, std::string>;

const std::vector<std::string>& filters() {
  static const std::vector<std::string> all = {"bilinear", "nearest", "bicubic", "lanczos"};
  return all;
}

double parse_number(const std::string& key, std::string_view text) {
  double value = 0, below = 1;
  size_t slash = text.find('/');
  bool good = parse_double(text.substr(0, slash), value);
  if (slash != text.npos) good = good && parse_double(text.substr(slash + 1), below) && below != 0;
  if (!good || !std::isfinite(value / below))
    fail("{}={} is not a number (try {}=1/255 or {}=0.5)", key, text, key, key);
  return value / below;
}

std::vector<double> parse_numbers(const std::string& key, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& part : split(text, ':')) numbers.push_back(parse_number(key, part));
  return numbers;
}

std::string parse_word(const std::string& key, const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (lower(word) == lower(text)) return word;
  fail("{}={} is unknown{}: choose from {}", key, text, did_you_mean(text, words), join(words, ", "));
}

int64_t parse_side(const std::string& key, std::string_view text) {
  int64_t side = 0;
  if (!parse_int(text, side) || side < 1 || side > 16384)
    fail("{}={} is not a size in pixels from 1 to 16384 (try {})", key, text,
         key == "crop" ? "crop=224" : "resize=32x32 or resize=256,crop=224");
  return side;
}

/// 3x32x32: at most channels, rows and columns.
std::vector<int64_t> parse_shape(const std::string& text) {
  std::vector<int64_t> shape;
  for (const std::string& side : split(lower(text), 'x')) {
    shape.push_back(0);
    if (!parse_int(side, shape.back()) || shape.back() < 1 || shape.back() > 16384) shape.clear();
    if (shape.empty()) break;
  }
  if (shape.size() < 2 || shape.size() > 3)
    fail("shape={} is not the shape of an image (try shape=28x28 or shape=3x32x32)", text);
  return shape;
}

Resize parse_resize(const Options& options) {
  Resize resize;
  const std::string& text = options.at("resize");
  auto crop = options.find("crop");
  size_t times = text.find_first_of("xX");
  if (times != text.npos) {
    if (crop != options.end()) fail("crop={} needs resize=SHORTER_SIDE, not resize={}", crop->second, text);
    resize.height = parse_side("resize", std::string_view(text).substr(0, times));
    resize.width = parse_side("resize", std::string_view(text).substr(times + 1));
  } else {
    resize.shorter = resize.crop = parse_side("resize", text);
    if (crop != options.end()) resize.crop = parse_side("crop", crop->second);
    if (resize.crop > resize.shorter)
      fail("crop={} is larger than the shorter side that resize={} gives", resize.crop, text);
  }
  return resize;
}

std::string number_text(double value) {
  double inverse = 1 / value;
  if (std::abs(value) < 1 && std::abs(inverse) < 1e6 && std::round(inverse) == inverse && 1 / inverse == value)
    return fmt::format("1/{:.0f}", inverse);
  return fmt::format("{}", value);
}

std::string numbers_text(const std::vector<double>& values) { return fmt::format("{}", fmt::join(values, ":")); }

}  // namespace

const std::vector<std::string>& preprocess_keys() {
  static const std::vector<std::string> keys = {"scale", "mean",   "std",  "layout", "color",    "per_image",
                                                "shape", "resize", "crop", "filter", "antialias"};
  return keys;
}

Preprocess parse_preprocess(const Options& options) {
  Preprocess out;
  auto given = [&](const char* key) { return options.count(key) != 0; };
  if (given("scale")) out.scale = parse_number("scale", options.at("scale"));
  if (out.scale == 0.0) fail("scale={} would make every value 0", options.at("scale"));
  if (given("mean")) out.mean = parse_numbers("mean", options.at("mean"));
  if (given("std")) out.std = parse_numbers("std", options.at("std"));
  for (double deviation : out.std)
    if (!(deviation > 0)) fail("std={} holds {}: a standard deviation must be above 0", options.at("std"), deviation);
  if (given("layout")) out.layout = parse_word("layout", options.at("layout"), {"NCHW", "NHWC", "NCWH", "NWHC"});
  if (given("color")) out.color = parse_word("color", options.at("color"), {"RGB", "BGR"});
  out.per_image = yes_option(options, "per_image", false);
  if (out.per_image && (given("mean") || given("std")))
    fail("per_image=yes takes each image's own mean and standard deviation: mean= and std= cannot be combined with it");
  if (given("shape")) out.shape = parse_shape(options.at("shape"));
  if (given("resize")) out.resize = parse_resize(options);
  for (const char* key : {"crop", "filter", "antialias"})
    if (given(key) && !out.resize) fail("{}={} needs resize=", key, options.at(key));
  if (given("filter")) out.resize->filter = parse_word("filter", options.at("filter"), filters());
  if (given("antialias")) out.resize->antialias = yes_option(options, "antialias", true);
  return out;
}

Options options_of(const Preprocess& preprocess) {
  Options out;
  if (preprocess.scale) out["scale"] = number_text(*preprocess.scale);
  if (!preprocess.mean.empty()) out["mean"] = numbers_text(preprocess.mean);
  if (!preprocess.std.empty()) out["std"] = numbers_text(preprocess.std);
  if (!preprocess.layout.empty()) out["layout"] = preprocess.layout;
  if (!preprocess.color.empty()) out["color"] = preprocess.color;
  if (preprocess.per_image) out["per_image"] = "yes";
  if (!preprocess.shape.empty()) out["shape"] = fmt::format("{}", fmt::join(preprocess.shape, "x"));
  if (!preprocess.resize) return out;
  const Resize& resize = *preprocess.resize;
  out["resize"] = resize.shorter ? std::to_string(resize.shorter) : fmt::format("{}x{}", resize.height, resize.width);
  if (resize.shorter) out["crop"] = std::to_string(resize.crop);
  if (resize.filter != "bilinear") out["filter"] = resize.filter;
  if (!resize.antialias) out["antialias"] = "no";
  return out;
}

}  // namespace netmend::dataset
