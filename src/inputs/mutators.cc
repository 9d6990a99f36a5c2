// Each mutator draws its parameter from DeepHunter's list and applies it. Where DeepHunter's code is given its noises
// in units of single grey levels (Gaussian) or of the whole range (speckle), which do nothing or are hardly ever valid,
// ours have a twentieth of the range. Shearing and scaling are about the middle of the picture. DeepHunter moves by up
// to 3 pixels, of pictures of 28 and more: smaller ones are moved by as much of their side.
#include "inputs/mutators.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace netmend::inputs {
namespace {

constexpr double kNoise = 0.05;

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + int64_t(random.below(uint64_t(high - low + 1)));
}

at::Tensor translated(const at::Tensor& picture, Random& random) {
  const auto drawn = double(between(random, -3, 2));
  const double most = largest_shift(picture.size(1), picture.size(2));
  const double by = most < 1 ? drawn / 3 * most : std::round(drawn / 3 * most);
  return warp(picture, {.y0 = -by, .x0 = -by});
}

at::Tensor rotated(const at::Tensor& picture, Random& random) {
  const double angle = double(between(random, -50, 49)) * std::numbers::pi / 180;
  return warp(picture, {std::cos(angle), -std::sin(angle), 0, std::sin(angle), std::cos(angle), 0});
}

at::Tensor scaled(const at::Tensor& picture, Random& random) {
  const double factor = double(between(random, 7, 11)) / 10;
  return warp(picture, {.yy = 1 / factor, .xx = 1 / factor});
}

at::Tensor sheared(const at::Tensor& picture, Random& random) {
  return warp(picture, {.xy = -double(between(random, -6, 5)) / 10});
}

at::Tensor contrasted(const at::Tensor& picture, Random& random) {
  return change_contrast(picture, double(between(random, 5, 12)) / 10);
}

at::Tensor brightened(const at::Tensor& picture, Random& random) {
  return change_brightness(picture, double(between(random, -20, 19)));
}

at::Tensor blurred(const at::Tensor& picture, Random& random) {
  const int64_t kind = between(random, 0, 8);
  if (kind < 4) return mean_blur(picture, 3 + kind);
  return kind < 7 ? gaussian_blur(picture, 3 + 2 * (kind - 4)) : median_blur(picture, 3 + 2 * (kind - 7));
}

at::Tensor replaced(const at::Tensor& picture, Random& random) {
  at::Tensor changed = picture.clone();
  const int64_t places = picture.size(1) * picture.size(2);
  at::Tensor flat = changed.flatten(1);
  for (int64_t left = between(random, 1, 9); left > 0; --left) {
    const auto place = int64_t(random.below(uint64_t(places)));
    for (int64_t c = 0; c < picture.size(0); ++c) flat[c][place].fill_(double(random.below(256)) / 255);
  }
  return changed;
}

at::Tensor noise_like(const at::Tensor& picture, Random& random) {
  at::Tensor noise = at::empty(picture.sizes(), at::kFloat);
  for (int64_t i = 0; i < noise.numel(); ++i) noise.data_ptr<float>()[i] = float(kNoise * random.normal());
  return noise;
}

at::Tensor with_gaussian(const at::Tensor& picture, Random& random) {
  return (picture + noise_like(picture, random)).clamp(0, 1);
}

at::Tensor with_speckle(const at::Tensor& picture, Random& random) {
  return (picture + picture * noise_like(picture, random)).clamp(0, 1);
}

/// 0.4 % of the values, half of them white and half black.
at::Tensor with_salt_and_pepper(const at::Tensor& picture, Random& random) {
  at::Tensor changed = picture.clone().contiguous();
  const int64_t each = std::max<int64_t>(1, int64_t(std::ceil(0.004 * double(picture.numel()) / 2)));
  for (int64_t i = 0; i < 2 * each; ++i)
    changed.data_ptr<float>()[random.below(uint64_t(picture.numel()))] = i < each ? 1.f : 0.f;
  return changed;
}

/// The largest square that still counts as few values, grey, anywhere.
at::Tensor covered(const at::Tensor& picture, Random& random) {
  const int64_t height = picture.size(1), width = picture.size(2);
  const double most = kFewValues * double(height * width);
  int64_t side = std::max<int64_t>(1, int64_t(std::floor(std::sqrt(most))));
  while (side > 1 && double(side * side) >= most) --side;
  side = std::min({side, height, width});
  at::Tensor changed = picture.clone();
  const auto top = int64_t(random.below(uint64_t(height - side + 1))),
             left = int64_t(random.below(uint64_t(width - side + 1)));
  changed.narrow(1, top, side).narrow(2, left, side).fill_(random.below(2) ? 0.5 : 0.0);
  return changed;
}

constexpr Mutator kMutators[] = {
    {"translate", true, translated, false},
    {"rotate", true, rotated, false},
    {"scale", true, scaled, false},
    {"shear", true, sheared, false},
    {"contrast", false, contrasted, true},
    {"brightness", false, brightened, true},
    {"blur", false, blurred, true},
    {"pixels", false, replaced, false},
    {"gaussian", false, with_gaussian, false},
    {"salt-pepper", false, with_salt_and_pepper, false},
    {"speckle", false, with_speckle, false},
    {"occlusion", false, covered, false},
};

}  // namespace

std::span<const Mutator> mutators() { return kMutators; }

double largest_shift(int64_t height, int64_t width) {
  const double tenth = double(std::min(height, width)) / 10;
  return tenth < 1 ? tenth : std::min(3.0, std::round(tenth));
}

const Mutator& find_mutator(std::string_view name) {
  for (const Mutator& mutator : kMutators)
    if (mutator.name == name) return mutator;
  throw std::logic_error("no mutator of that name");
}

bool is_valid(const at::Tensor& reference, const at::Tensor& changed) {
  at::Tensor off = (changed - reference).abs();
  const double share = double((off > 0).sum().item<int64_t>()) / double(std::max<int64_t>(1, off.numel()));
  return share < kFewValues || off.max().item<double>() <= kSmallChange + 1e-6;
}

at::Tensor change_contrast(const at::Tensor& picture, double factor) { return (picture * factor).clamp(0, 1); }
at::Tensor change_brightness(const at::Tensor& picture, double levels) { return (picture + levels / 255).clamp(0, 1); }

}  // namespace netmend::inputs
