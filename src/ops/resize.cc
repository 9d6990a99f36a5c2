// Resize and Upsample, axis by axis (and GridSample, which LibTorch has): each output position is a weighted sum of a
// few input positions, or one of them. The weights of an axis are computed here in double precision; LibTorch gathers
// and adds.
#include <algorithm>
#include <cmath>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Coordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,
  kTfCropAndResize
};
enum class Nearest { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
enum class Aspect { kStretch, kNotLarger, kNotSmaller };

template <typename T>
T named(const NodeView& node, const char* attribute, const std::string& value,
        std::initializer_list<std::pair<const char*, T>> names) {
  for (auto& [name, result] : names) {
    if (value == name) return result;
  }
  node.refuse("{} is {}, which is not supported", attribute, value);
}

struct ResizeForm {
  Mode mode;
  Coordinates coordinates = Coordinates::kAsymmetric;
  Nearest nearest = Nearest::kFloor;
  Aspect aspect = Aspect::kStretch;
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
  std::optional<std::vector<int64_t>> axes;
};

Mode mode_of(const NodeView& node) {
  return named<Mode>(
      node, "mode", node.text("mode", "nearest"),
      {{"nearest", Mode::kNearest}, {"linear", Mode::kLinear}, {"bilinear", Mode::kLinear}, {"cubic", Mode::kCubic}});
}

void read_modes(const NodeView& node, ResizeForm& form) {
  form.coordinates = named<Coordinates>(node, "coordinate_transformation_mode",
                                        node.text("coordinate_transformation_mode", "half_pixel"),
                                        {{"half_pixel", Coordinates::kHalfPixel},
                                         {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
                                         {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
                                         {"align_corners", Coordinates::kAlignCorners},
                                         {"asymmetric", Coordinates::kAsymmetric},
                                         {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNn},
                                         {"tf_crop_and_resize", Coordinates::kTfCropAndResize}});
  form.nearest = named<Nearest>(node, "nearest_mode", node.text("nearest_mode", "round_prefer_floor"),
                                {{"round_prefer_floor", Nearest::kRoundPreferFloor},
                                 {"round_prefer_ceil", Nearest::kRoundPreferCeil},
                                 {"floor", Nearest::kFloor},
                                 {"ceil", Nearest::kCeil}});
  form.aspect = named<Aspect>(
      node, "keep_aspect_ratio_policy", node.text("keep_aspect_ratio_policy", "stretch"),
      {{"stretch", Aspect::kStretch}, {"not_larger", Aspect::kNotLarger}, {"not_smaller", Aspect::kNotSmaller}});
}

ResizeForm resize_form(const NodeView& node) {
  ResizeForm form{.mode = mode_of(node)};
  read_modes(node, form);
  form.cubic_a = node.real("cubic_coeff_a", -0.75);
  form.extrapolation = node.real("extrapolation_value", 0);
  form.exclude_outside = node.integer("exclude_outside", 0) != 0;
  form.antialias = node.integer("antialias", 0) != 0 && form.mode != Mode::kNearest;
  if (node.has("axes")) form.axes = node.integers("axes");
  return form;
}

/// How one axis is resized.
struct AxisPlan {
  int64_t in, out;
  double scale;
  double roi_start = 0, roi_end = 1;

  /// The width that the scale asks for, which need not be whole.
  double wanted() const { return scale * double(in); }
};

/// Where an output position lies on the input.
double original(const AxisPlan& a, Coordinates how, int64_t position) {
  double x = double(position), last = double(a.in - 1);
  switch (how) {
    case Coordinates::kHalfPixel:
      return (x + 0.5) / a.scale - 0.5;
    case Coordinates::kPytorchHalfPixel:
      return a.wanted() == 1 ? -0.5 : (x + 0.5) / a.scale - 0.5;
    case Coordinates::kHalfPixelSymmetric:
      return double(a.in) / 2 * (1 - double(a.out) / a.wanted()) + (x + 0.5) / a.scale - 0.5;
    case Coordinates::kAlignCorners:
      return a.wanted() == 1 ? 0 : x * last / (a.wanted() - 1);
    case Coordinates::kAsymmetric:
      return x / a.scale;
    case Coordinates::kTfHalfPixelForNn:
      return (x + 0.5) / a.scale;
    case Coordinates::kTfCropAndResize:
      break;
  }
  double width = a.roi_end - a.roi_start;
  return a.roi_start * last + (a.wanted() == 1 ? width * last / 2 : x * width * last / (a.wanted() - 1));
}

int64_t nearest_position(double x, Nearest how) {
  switch (how) {
    case Nearest::kFloor:
      return int64_t(std::floor(x));
    case Nearest::kCeil:
      return int64_t(std::ceil(x));
    case Nearest::kRoundPreferFloor:
      return int64_t(std::ceil(x - 0.5));
    case Nearest::kRoundPreferCeil:
      return int64_t(std::floor(x + 0.5));
  }
  return 0;
}

/// The filters as functions of the distance to an input position, in input pixels.
double triangle(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

double cubic(double distance, double a) {
  double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Input positions and their weights: out × taps.
struct Taps {
  int64_t count;
  std::vector<int64_t> index;
  std::vector<double> weight;
};

void normalise(double* weights, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += weights[k];
  for (int64_t k = 0; k < count && sum != 0; ++k) weights[k] /= sum;
}

/// Antialiasing widens the filter by 1/scale when the axis shrinks, so that every input pixel counts.
Taps taps_of(const AxisPlan& a, const ResizeForm& form) {
  double stretch = form.antialias ? std::min(a.scale, 1.0) : 1, reach = (form.mode == Mode::kCubic ? 2 : 1) / stretch;
  if (!(reach < 1e6)) fail("scale {} is too small", a.scale);
  int64_t half = int64_t(std::ceil(reach));
  Taps taps{2 * half};
  at::Tensor room = at::empty({times(a.out, taps.count)}, at::kLong);  // asks the memory budget before we take the same
  taps.index.resize(room.numel()), taps.weight.resize(room.numel());
  for (int64_t o = 0; o < a.out; ++o) {
    double x = original(a, form.coordinates, o);
    x = std::clamp(x, -2e15, 2e15);
    int64_t first = int64_t(std::floor(x)) - half + 1;
    double* weights = &taps.weight[o * taps.count];
    for (int64_t k = 0; k < taps.count; ++k) {
      int64_t at = first + k;
      double distance = (double(at) - x) * stretch;
      weights[k] = form.mode == Mode::kCubic ? cubic(distance, form.cubic_a) : triangle(distance);
      if (form.exclude_outside && (at < 0 || at >= a.in)) weights[k] = 0;
      taps.index[o * taps.count + k] = std::clamp<int64_t>(at, 0, a.in - 1);
    }
    if (form.exclude_outside || form.antialias) normalise(weights, taps.count);
  }
  return taps;
}

at::Tensor resized_smoothly(const at::Tensor& x, int64_t axis, const AxisPlan& a, const ResizeForm& form) {
  Taps taps = taps_of(a, form);
  at::Tensor index = at::tensor(taps.index, at::kLong).reshape({a.out, taps.count}).to(x.device());
  at::Tensor weight = at::tensor(taps.weight, at::kDouble).reshape({a.out, taps.count}).to(x.options());
  std::vector<int64_t> shape(x.dim(), 1);
  shape[axis] = a.out;
  at::Tensor sum;
  for (int64_t k = 0; k < taps.count; ++k) {
    at::Tensor part = at::index_select(x, axis, index.select(1, k)) * weight.select(1, k).reshape(shape);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

at::Tensor resized_nearest(const at::Tensor& x, int64_t axis, const AxisPlan& a, const ResizeForm& form) {
  at::Tensor index = at::empty({a.out}, at::kLong);
  int64_t* data = index.data_ptr<int64_t>();
  for (int64_t o = 0; o < a.out; ++o) {
    double at = std::clamp(original(a, form.coordinates, o), -1.0, double(a.in));
    data[o] = std::clamp<int64_t>(nearest_position(at, form.nearest), 0, a.in - 1);
  }
  return at::index_select(x, axis, index.to(x.device()));
}

/// With cropping, output positions that lie outside the input have a value of their own.
at::Tensor with_outside(const at::Tensor& y, int64_t axis, const AxisPlan& a, const ResizeForm& form) {
  at::Tensor outside = at::empty({a.out}, at::kBool);
  bool* data = outside.data_ptr<bool>();
  for (int64_t o = 0; o < a.out; ++o) {
    double x = original(a, form.coordinates, o);
    data[o] = x < 0 || x > double(a.in - 1);
  }
  std::vector<int64_t> shape(y.dim(), 1);
  shape[axis] = a.out;
  return y.masked_fill(outside.to(y.device()).reshape(shape), form.extrapolation);
}

bool changes(const AxisPlan& a, const ResizeForm& form) {
  bool crops = form.coordinates == Coordinates::kTfCropAndResize && (a.roi_start != 0 || a.roi_end != 1);
  return a.in != a.out || a.scale != 1 || crops;
}

at::Tensor resized(const at::Tensor& x, const std::vector<AxisPlan>& plans, const ResizeForm& form) {
  at::Tensor y = x.is_floating_point() ? x : x.to(at::kDouble);
  for (size_t axis = 0; axis < plans.size(); ++axis) {
    const AxisPlan& a = plans[axis];
    if (!changes(a, form)) continue;
    if (a.in == 0 && a.out > 0) fail("axis {} is empty", axis);
    y = form.mode == Mode::kNearest ? resized_nearest(y, axis, a, form) : resized_smoothly(y, axis, a, form);
    if (form.coordinates == Coordinates::kTfCropAndResize) y = with_outside(y, axis, a, form);
  }
  if (x.is_floating_point()) return y.is_same(x) ? at::alias(x) : y;
  return (form.mode == Mode::kNearest ? y : at::round(y)).to(x.scalar_type());
}

std::vector<AxisPlan> unchanged(const at::Tensor& x) {
  std::vector<AxisPlan> plans;
  for (int64_t size : x.sizes()) plans.push_back({size, size, 1});
  return plans;
}

/// Half goes up, as ONNX defines for sizes that keep the aspect ratio.
int64_t round_half_up(double x) { return int64_t(std::floor(x + 0.5)); }

void plan_by_scales(std::vector<AxisPlan>& plans, const std::vector<int64_t>& axes, const std::vector<double>& scales,
                    Coordinates coordinates) {
  if (scales.size() != axes.size()) fail("scales has {} numbers for {} axes", scales.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& a = plans[axes[i]];
    if (!(scales[i] > 0) || !std::isfinite(scales[i])) fail("scale {} is not positive", scales[i]);
    double crop = coordinates == Coordinates::kTfCropAndResize ? a.roi_end - a.roi_start : 1;
    double out = std::floor(double(a.in) * crop * scales[i]);
    if (!(out >= 0 && out < 1e12)) fail("scale {} makes {} elements", scales[i], out);
    a.out = int64_t(out), a.scale = scales[i];
  }
}

void plan_by_sizes(std::vector<AxisPlan>& plans, const std::vector<int64_t>& axes, const std::vector<int64_t>& sizes,
                   Aspect aspect) {
  if (sizes.size() != axes.size()) fail("sizes has {} numbers for {} axes", sizes.size(), axes.size());
  std::vector<double> scales;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& a = plans[axes[i]];
    if (sizes[i] < 1 || a.in < 1) fail("size {} of an axis of {}", sizes[i], a.in);
    a.out = sizes[i], a.scale = double(sizes[i]) / double(a.in);
    scales.push_back(a.scale);
  }
  if (aspect == Aspect::kStretch || scales.empty()) return;
  auto [low, high] = std::minmax_element(scales.begin(), scales.end());
  double scale = aspect == Aspect::kNotLarger ? *low : *high;
  for (int64_t axis : axes) {
    plans[axis].out = round_half_up(scale * double(plans[axis].in)), plans[axis].scale = scale;
    if (plans[axis].out < 1) fail("an axis would be empty");
  }
}

void read_roi(std::vector<AxisPlan>& plans, const std::vector<int64_t>& axes, const std::vector<double>& roi) {
  if (roi.size() != 2 * axes.size()) fail("roi has {} numbers for {} axes", roi.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    plans[axes[i]].roi_start = roi[i], plans[axes[i]].roi_end = roi[axes.size() + i];
    if (!std::isfinite(roi[i]) || !std::isfinite(roi[axes.size() + i])) fail("roi is not finite");
  }
}

bool given(const Call& call, size_t slot) { return call.has(slot) && call.in(slot).numel() > 0; }

void resize_by_scales(Call& call, const ResizeForm& form, const std::vector<double>& scales) {
  const at::Tensor& x = call.in(0);
  std::vector<AxisPlan> plans = unchanged(x);
  plan_by_scales(plans, all_axes(x.dim()), scales, form.coordinates);
  call.set(0, resized(x, plans, form));
}

/// Opset 10 has scales only, and the plain division of coordinates that Upsample has.
Kernel scale_only(ResizeForm form, std::vector<double> attribute) {
  form.coordinates = Coordinates::kAsymmetric;
  form.nearest = Nearest::kFloor;
  return [=](Call& call) { resize_by_scales(call, form, call.has(1) ? reals_of(call.in(1), "scales") : attribute); };
}

}  // namespace

Kernel upsample(const NodeView& node) { return scale_only({.mode = mode_of(node)}, node.reals("scales")); }

Kernel resize(const NodeView& node) {
  if (node.opset() < 11) return scale_only({.mode = mode_of(node)}, {});
  ResizeForm form = resize_form(node);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    std::vector<AxisPlan> plans = unchanged(x);
    std::vector<int64_t> axes = form.axes ? axes_in(*form.axes, x.dim()) : all_axes(x.dim());
    if (form.coordinates == Coordinates::kTfCropAndResize) read_roi(plans, axes, reals_of(call.in(1), "roi"));
    if (given(call, 3) == given(call, 2)) fail("exactly one of scales and sizes must be given");
    if (given(call, 2)) plan_by_scales(plans, axes, reals_of(call.in(2), "scales"), form.coordinates);
    if (given(call, 3)) plan_by_sizes(plans, axes, integers_of(call.in(3), "sizes"), form.aspect);
    call.set(0, resized(x, plans, form));
  };
}

/// Where a coordinate of a grid, -1 … 1, lies on an axis: as it is, kept on the axis, or thrown back from its ends.
at::Tensor on_axis(const at::Tensor& g, int64_t size, int64_t padding, bool corners) {
  at::Tensor at = corners ? (g + 1) * (double(size - 1) / 2) : ((g + 1) * double(size) - 1) / 2;
  double low = corners ? 0 : -0.5, span = corners ? double(size - 1) : double(size);
  if (padding == 2 && span > 0) {
    at::Tensor folded = at::remainder(at - low, 2 * span);
    at = at::minimum(folded, 2 * span - folded) + low;
  }
  return padding == 0 ? at : at.clamp(0, double(size - 1));
}

/// The nearest element of a volume, halves to even, which LibTorch's sampler rounds away from 0.
at::Tensor nearest_in_volume(const at::Tensor& x, const at::Tensor& grid, int64_t padding, bool corners) {
  if (grid.dim() != 5 || grid.size(4) != 3 || grid.size(0) != x.size(0)) fail("the grid does not fit the volumes");
  if (x.numel() == 0) fail("the input is empty");
  at::Tensor index = at::zeros({}, grid.options().dtype(at::kLong)),
             inside = at::ones({}, grid.options().dtype(at::kBool));
  for (int64_t axis = 0; axis < 3; ++axis) {
    int64_t size = x.size(axis + 2);
    at::Tensor place = at::round(on_axis(grid.select(4, 2 - axis), size, padding, corners));
    inside = inside.logical_and(place >= 0).logical_and(place <= double(size - 1));
    index = index * size + place.nan_to_num(0).clamp(0, double(size - 1)).to(at::kLong);
  }
  std::vector<int64_t> shape = {x.size(0), x.size(1), grid.size(1), grid.size(2), grid.size(3)};
  at::Tensor flat = index.reshape({x.size(0), 1, -1}).expand({x.size(0), x.size(1), index.numel() / x.size(0)});
  at::Tensor y = x.reshape({x.size(0), x.size(1), -1}).gather(2, flat).reshape(shape);
  return y.masked_fill(inside.logical_not().unsqueeze(1), 0);
}

/// LibTorch numbers the modes.
Kernel grid_sample(const NodeView& node) {
  int64_t mode = named<int64_t>(node, "mode", node.text("mode", node.opset() < 20 ? "bilinear" : "linear"),
                                {{"bilinear", 0}, {"linear", 0}, {"nearest", 1}, {"bicubic", 2}, {"cubic", 2}});
  int64_t padding = named<int64_t>(node, "padding_mode", node.text("padding_mode", "zeros"),
                                   {{"zeros", 0}, {"border", 1}, {"reflection", 2}});
  bool corners = node.integer("align_corners", 0) != 0;
  return [=](Call& call) {
    if (call.in(0).dim() == 5 && mode == 2) fail("cubic sampling of volumes is not supported");
    if (call.in(0).dim() == 5 && mode == 1)
      return call.set(0, nearest_in_volume(call.in(0), call.in(1), padding, corners));
    call.set(0, at::grid_sampler(call.in(0), call.in(1), mode, padding, corners));
  };
}

// clang-format off
std::span<const Op> resize_rows() {
  static constexpr Op kRows[] = {
      {.name = "GridSample", .prepare = grid_sample},
      {.name = "Resize", .prepare = resize},
      {.name = "Upsample", .prepare = upsample, .newest = 9},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
