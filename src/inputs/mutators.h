// Changes of a picture that should not change what it shows, with parameters drawn as DeepHunter draws them (Xie et
// al., ISSTA 2019; the blurs are DeepTest's, arXiv:1708.08559), and the rule that says which results still count.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "base/random.h"

namespace netmend::inputs {

/// A picture is channels × rows × columns of units, 0 … 1.
struct Mutator {
  std::string_view name;
  bool affine;  ///< moves pixels: at most one of these in the history of an input
  at::Tensor (*apply)(const at::Tensor& picture, Random& random);
  bool unchecked_as_published;  ///< DeepHunter's code lets its results pass although they change values, not places
};
std::span<const Mutator> mutators();
const Mutator& find_mutator(std::string_view name);
/// How far `translate` moves a picture, in pixels: a tenth of the shorter side, 3 at most; whole pixels from 1 on.
double largest_shift(int64_t height, int64_t width);

/// DeepHunter's validity: either few values changed, by any amount, or none by much.
constexpr double kFewValues = 0.02, kSmallChange = 0.2;
bool is_valid(const at::Tensor& reference, const at::Tensor& changed);

/// The same picture with its pixels at other places: pixel (y, x) of the result is taken, between the four nearest
/// ones, from the place to_source gives; black outside. Coordinates count from the middle.
struct Affine {
  double yy = 1, yx = 0, y0 = 0, xy = 0, xx = 1, x0 = 0;  ///< source y = yy·y + yx·x + y0, source x = xy·y + xx·x + x0
};
at::Tensor warp(const at::Tensor& picture, const Affine& to_source);

/// Mean over a square, as OpenCV's blur: with an even size one more pixel before than after. Edges are mirrored.
at::Tensor mean_blur(const at::Tensor& picture, int64_t size);
/// Binomial weights of size 3, 5 or 7, as OpenCV takes them.
at::Tensor gaussian_blur(const at::Tensor& picture, int64_t size);
/// Median over a square of odd size; edges are repeated.
at::Tensor median_blur(const at::Tensor& picture, int64_t size);

at::Tensor change_contrast(const at::Tensor& picture, double factor);
at::Tensor change_brightness(const at::Tensor& picture, double levels);

}  // namespace netmend::inputs
