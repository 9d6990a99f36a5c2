#include "dataset/transform.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

/// The loop that a pass over images spends its reading time in; plain enough for the compiler to use vector
/// instructions.
template <typename T>
void multiply_add(const T* __restrict in, int64_t count, float factor, float offset, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = float(in[i]) * factor + offset;
}

/// For floats 0…1 and 0…255 are taken as they are, anything else is stretched to what the sample holds.
std::vector<uint8_t> to_pixels(const std::vector<float>& values) {
  double low = INFINITY, high = -INFINITY;  // in double, since the largest float less the smallest is no float
  for (double value : values)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  double shift = 0, factor = 1;
  if (low >= 0 && high <= 1)
    factor = 255;
  else if (!(low >= 0 && high <= 255))
    shift = low, factor = high > low ? 255 / (high - low) : 0;
  std::vector<uint8_t> pixels;
  for (double value : values)
    pixels.push_back(std::isfinite(value) ? uint8_t(std::clamp((value - shift) * factor + 0.5, 0.0, 255.0)) : 0);
  return pixels;
}

/// Colour pixels into three planes; taking all three at once reads every byte once.
template <typename T>
void to_planes(const T* __restrict in, int64_t pixels, const float* factor, const float* offset,
               float* __restrict out) {
  const float f0 = factor[0], f1 = factor[1], f2 = factor[2], o0 = offset[0], o1 = offset[1], o2 = offset[2];
  float* __restrict first = out, * __restrict second = out + pixels, * __restrict third = out + 2 * pixels;
  for (int64_t i = 0; i < pixels; ++i) {
    first[i] = float(in[3 * i]) * f0 + o0;
    second[i] = float(in[3 * i + 1]) * f1 + o1;
    third[i] = float(in[3 * i + 2]) * f2 + o2;
  }
}

template <typename T>
std::vector<T> copy_interleaved(const PixelView<T>& image) {
  std::vector<T> out;
  out.reserve(size_t(image.height * image.width * image.channels));
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x)
      for (int64_t c = 0; c < image.channels; ++c)
        out.push_back(image.data[y * image.row_stride + x * image.column_stride + c * image.channel_stride]);
  return out;
}

/// Pictures have one channel or three: two become one, four lose their transparency.
Display picture(int64_t height, int64_t width, int64_t channels, std::vector<uint8_t> pixels) {
  Display display{Display::kImage, height, width, channels >= 3 ? 3 : 1, {}, ""};
  if (display.channels == channels) {
    display.pixels = std::move(pixels);
    return display;
  }
  for (int64_t i = 0; i < height * width; ++i)
    for (int64_t c = 0; c < display.channels; ++c) display.pixels.push_back(pixels[size_t(i * channels + c)]);
  return display;
}

}  // namespace

Transform::Transform(const Preprocess& preprocess, Form form, std::vector<int64_t> raw_shape, const std::string& what)
    : form_(form), resize_(preprocess.resize), per_image_(preprocess.per_image) {
  if (!preprocess.shape.empty()) fail("shape= is for arrays of plain rows: {} has a shape of its own", what);
  for (const char* key : {"layout", "color", "resize"})
    if (form == Form::kPlain && options_of(preprocess).count(key))
      fail("{}= does not apply to {}: its samples of {} are not images", key, what, shape_text(raw_shape));
  elements_ = 1;
  for (int64_t size : raw_shape) elements_ *= size;
  if (form == Form::kPlain) {
    shape_ = raw_shape;
    channels_ = raw_shape.empty() ? 1 : raw_shape.back();
    width_ = channels_ ? elements_ / channels_ : 0;
    channels_last_ = true;
  } else {
    if (form == Form::kRowsColumns) raw_shape.insert(raw_shape.begin(), 1);
    bool last = form == Form::kRowsColumnsChannels;
    check(raw_shape.size() == 3, "{}: an image needs three axes", what);
    height_ = raw_shape[last ? 0 : 1], width_ = raw_shape[last ? 1 : 2], channels_ = raw_shape[last ? 2 : 0];
    channels_last_ = preprocess.layout.empty() ? last : preprocess.layout.ends_with("C");
    turn_axes_ = preprocess.layout == "NCWH" || preprocess.layout == "NWHC";
    auto [rows, columns] = turn_axes_ ? std::pair(width_, height_) : std::pair(height_, width_);
    auto [height, width] = resize_ ? resized(rows, columns, *resize_) : std::pair(rows, columns);
    shape_ = channels_last_ ? std::vector{height, width, channels_} : std::vector{channels_, height, width};
    straight_ = !resize_ && !turn_axes_ && (channels_ == 1 || channels_last_ == last);
  }
  turn_colors_ = preprocess.color == "BGR";
  if (turn_colors_ && channels_ != 3) fail("color=BGR needs three channels, {} has {}", what, channels_);
  set_affine(preprocess, what);
}

void Transform::set_affine(const Preprocess& preprocess, const std::string& what) {
  auto pick = [&](const char* key, const std::vector<double>& values, int64_t channel, double otherwise) {
    if (values.empty()) return otherwise;
    if (values.size() != 1 && int64_t(values.size()) != channels_)
      fail("{}= has {} numbers, {} has {} {}", key, values.size(), what, channels_,
           image() ? "channels" : "values in a row");
    return values[values.size() == 1 ? 0 : size_t(channel)];
  };
  // Rows may be long: what is the same for all their values is kept once.
  const bool one = !image() && preprocess.mean.size() <= 1 && preprocess.std.size() <= 1;
  for (int64_t c = 0; c < (one ? 1 : channels_); ++c) {
    double deviation = pick("std", preprocess.std, c, 1), mean = pick("mean", preprocess.mean, c, 0);
    const double factor = preprocess.scale.value_or(1) / deviation, offset = -mean / deviation;
    constexpr double kMost = 1e30;  // far below what float32 ends at: values are still multiplied
    if (!(std::abs(factor) <= kMost && std::abs(offset) <= kMost && deviation <= kMost && std::abs(mean) <= kMost))
      fail("scale=, mean= and std= of {} make values of {:.3g}·x {:+.3g}: only numbers up to {:.0e} are supported",
           what, factor, offset, kMost);
    factor_.push_back(float(factor));
    offset_.push_back(float(offset));
    uniform_ = uniform_ && factor_.back() == factor_[0] && offset_.back() == offset_[0];
  }
  uniform_ = uniform_ && !turn_colors_;
}

/// As TensorFlow's per_image_standardization: a uniform image is divided by what keeps it finite.
void Transform::standardise(int64_t count, float* out) const {
  int64_t size = 1;
  for (const int64_t along : shape_) size *= along;
  for (int64_t i = 0; i < count; ++i, out += size) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < size; ++k) sum += out[k];
    const double mean = sum / double(size);
    for (int64_t k = 0; k < size; ++k) squares += (out[k] - mean) * (out[k] - mean);
    const double deviation = std::max(std::sqrt(squares / double(size)), 1 / std::sqrt(double(size)));
    for (int64_t k = 0; k < size; ++k) out[k] = float((out[k] - mean) / deviation);
  }
}

Feature Transform::feature(const std::string& name) const {
  Feature feature;
  feature.name = name;
  feature.shape = shape_;
  feature.image = image();
  feature.channels_last = image() && channels_last_;
  return feature;
}

template <typename T>
PixelView<T> Transform::view(const T* raw) const {
  if (form_ == Form::kPlain || form_ == Form::kRowsColumnsChannels) return interleaved(raw, height_, width_, channels_);
  return planar(raw, height_, width_, channels_);
}

template <typename T>
PixelView<T> Transform::turned(PixelView<T> image) const {
  if (!turn_axes_) return image;
  std::swap(image.height, image.width);
  std::swap(image.row_stride, image.column_stride);
  return image;
}

/// Channel c of the result comes from channel 2 − c of the source when colours are turned; mean and std are the
/// model's, so they belong to the result's order.
template <typename T>
void Transform::store(const PixelView<T>& image, float* out) const {
  const int64_t pixels = image.height * image.width;
  const bool tight = image.column_stride == 3 && image.channel_stride == 1 && image.row_stride == 3 * image.width;
  if (channels_ == 3 && !channels_last_ && !turn_colors_ && tight)
    return to_planes(image.data, pixels, factor_.data(), offset_.data(), out);
  const int64_t step = channels_last_ ? channels_ : 1, jump = channels_last_ ? 1 : pixels;
  for (int64_t c = 0; c < channels_; ++c) {
    const T* from = image.data + (turn_colors_ ? 2 - c : c) * image.channel_stride;
    float* to = out + c * jump;
    const float factor = factor_[size_t(c)], offset = offset_[size_t(c)];
    for (int64_t y = 0; y < image.height; ++y, to += image.width * step) {
      const T* row = from + y * image.row_stride;
      if (step == 1 && image.column_stride == 1)
        multiply_add(row, image.width, factor, offset, to);
      else
        for (int64_t x = 0; x < image.width; ++x) to[x * step] = float(row[x * image.column_stride]) * factor + offset;
    }
  }
}

template <typename T>
void Transform::apply_one(const T* raw, float* out) const {
  if (straight_ && uniform_) return multiply_add(raw, elements_, factor_[0], offset_[0], out);
  PixelView<T> image = turned(view(raw));
  if (!resize_) return store(image, out);
  std::vector<T> pixels = resample(image, *resize_);
  auto [height, width] = resized(image.height, image.width, *resize_);
  store(interleaved(pixels.data(), height, width, channels_), out);
}

void Transform::apply(const uint8_t* raw, Element type, bool swapped, int64_t count, int64_t stride, float* out) const {
  int64_t result = 1;
  for (int64_t size : shape_) result *= size;
  float* at = out;
  if (type == Element::kU8 && straight_ && uniform_ && stride == elements_) {
    multiply_add(raw, count * elements_, factor_[0], offset_[0], out);
  } else {
    std::vector<float> values(type == Element::kU8 ? 0 : size_t(elements_));
    for (int64_t i = 0; i < count; ++i, raw += stride, at += result) {
      if (type == Element::kU8) {
        apply_one(raw, at);
      } else {
        to_floats(raw, type, swapped, elements_, values.data());
        apply_one(values.data(), at);
      }
    }
  }
  if (per_image_) standardise(count, out);
}

void Transform::apply_image(const PixelView<uint8_t>& upright, float* out) const {
  check(upright.channels == channels_, "{} channels instead of {}", upright.channels, channels_);
  PixelView<uint8_t> image = turned(upright);
  if (!resize_) {
    check(upright.height == height_ && upright.width == width_, "image of another size without resize");
    store(image, out);
  } else {
    std::vector<uint8_t> pixels = resample(image, *resize_);
    auto [height, width] = resized(image.height, image.width, *resize_);
    store(interleaved<uint8_t>(pixels.data(), height, width, channels_), out);
  }
  if (per_image_) standardise(1, out);
}

Display Transform::display_image(const PixelView<uint8_t>& image) const {
  auto [height, width] = resize_ ? resized(image.height, image.width, *resize_) : std::pair(image.height, image.width);
  return picture(height, width, image.channels, resize_ ? resample(image, *resize_) : copy_interleaved(image));
}

Display Transform::display(const uint8_t* raw, Element type, bool swapped) const {
  if (form_ == Form::kPlain) return {};
  if (type == Element::kU8) return display_image(view(raw));
  std::vector<float> values(static_cast<size_t>(elements_));
  to_floats(raw, type, swapped, elements_, values.data());
  PixelView<float> image = view<float>(values.data());
  std::vector<float> pixels = resize_ ? resample(image, *resize_) : copy_interleaved(image);
  auto [height, width] = resize_ ? resized(height_, width_, *resize_) : std::pair(height_, width_);
  return picture(height, width, channels_, to_pixels(pixels));
}

}  // namespace netmend::dataset
