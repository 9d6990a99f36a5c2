// How raw values become the model's input. A value of its own: given in a spec or a file, recorded with a run, written
// into models that netmend trains, and invertible for display.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace netmend::dataset {

struct Resize {
  int64_t height = 0, width = 0;  ///< exact size, or
  int64_t shorter = 0, crop = 0;  ///< shorter side scaled to this, then the middle cropped
  std::string filter = "bilinear";
  bool antialias = true;  ///< when shrinking, average over all pixels that fall together, as Pillow does
  bool operator==(const Resize&) const = default;
};

struct Preprocess {
  std::optional<double> scale;    ///< x · scale; written 1/255 or 0.0039
  std::vector<double> mean, std;  ///< one for all or one per channel, in units after scaling: (x · scale − mean) / std
  /// "NCHW" or "NHWC"; "NCWH" or "NWHC" where the images lie on their side; "" for the source's own
  std::string layout;
  std::string color;           ///< "RGB" or "BGR"; "" for the source's own
  bool per_image = false;      ///< each image by its own mean and standard deviation, as TensorFlow does; no mean, std
  std::vector<int64_t> shape;  ///< of a sample that the file keeps as a plain row: 3x32x32, 28x28; empty for its own
  std::optional<Resize> resize;
  bool operator==(const Preprocess&) const = default;
  bool empty() const { return *this == Preprocess(); }
};

/// Keys scale, mean, std, layout, color, per_image, shape, resize, crop, filter, antialias as written in specs
/// (`mean=0.49:0.48:0.45`, `shape=3x32x32`, `resize=256,crop=224`); others are left alone. Throws InputError.
Preprocess parse_preprocess(const std::map<std::string, std::string>& options);
/// The same keys back, without those that are not set: what goes into metadata and run records.
std::map<std::string, std::string> options_of(const Preprocess& preprocess);
/// All keys that parse_preprocess reads.
const std::vector<std::string>& preprocess_keys();

}  // namespace netmend::dataset
