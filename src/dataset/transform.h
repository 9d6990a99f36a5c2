// Preprocessing carried out: raw values of samples in, the model's floats out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataset/array.h"
#include "dataset/dataset.h"
#include "dataset/preprocess.h"
#include "dataset/resample.h"

namespace netmend::dataset {

/// How the axes of a raw sample are meant.
enum class Form { kPlain, kRowsColumns, kRowsColumnsChannels, kChannelsRowsColumns };

class Transform {
 public:
  Transform() = default;
  /// For samples of one raw shape. Throws InputError, naming `what`, when the preprocessing does not fit it.
  Transform(const Preprocess& preprocess, Form form, std::vector<int64_t> raw_shape, const std::string& what);

  const std::vector<int64_t>& shape() const { return shape_; }  ///< of a sample afterwards
  bool channels_last() const { return channels_last_; }
  bool image() const { return form_ != Form::kPlain; }
  /// How the result is described to others.
  Feature feature(const std::string& name) const;
  /// `count` samples, each `stride` bytes after the one before.
  void apply(const uint8_t* raw, Element type, bool swapped, int64_t count, int64_t stride, float* out) const;
  /// One image of any size; only with resize or when it has the raw shape.
  void apply_image(const PixelView<uint8_t>& image, float* out) const;
  /// The sample for a person's eyes: resized, in RGB, neither scaled nor shifted.
  Display display(const uint8_t* raw, Element type, bool swapped) const;
  Display display_image(const PixelView<uint8_t>& image) const;

 private:
  template <typename T>
  void store(const PixelView<T>& image, float* out) const;
  template <typename T>
  void apply_one(const T* raw, float* out) const;
  template <typename T>
  PixelView<T> view(const T* raw) const;
  template <typename T>
  PixelView<T> turned(PixelView<T> image) const;
  void set_affine(const Preprocess& preprocess, const std::string& what);
  void standardise(int64_t count, float* out) const;

  Form form_ = Form::kPlain;
  std::vector<int64_t> shape_;
  int64_t height_ = 1, width_ = 1, channels_ = 1;  ///< raw
  int64_t elements_ = 0;                           ///< raw
  std::optional<Resize> resize_;
  bool channels_last_ = false;  ///< in the result
  bool turn_colors_ = false;
  bool turn_axes_ = false;              ///< rows become columns
  std::vector<float> factor_, offset_;  ///< one per channel: value · factor + offset
  bool uniform_ = true;                 ///< the same for all channels
  bool per_image_ = false;              ///< values are then brought to mean 0 and standard deviation 1
  bool straight_ = true;                ///< values keep their order
};

}  // namespace netmend::dataset
