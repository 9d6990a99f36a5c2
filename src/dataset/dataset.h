// Examples and labels as batches. A data set is opened from a spec, knows what its inputs look like after
// preprocessing, and reads any set of samples from any number of threads. It never holds more than a bounded part of
// itself in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset/preprocess.h"
#include "dataset/spec.h"

namespace netmend::dataset {

enum class LabelKind { kNone, kClass, kNumber, kMulti };

/// One input of the model-to-be, without the batch axis; -1 marks an axis whose size differs from sample to sample.
struct Feature {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType type = at::kFloat;  ///< kFloat, or kLong for ids
  bool image = false;                ///< has a layout (channels, rows, columns) and a display form
  std::vector<std::string> columns;  ///< of a table: what each value is, `age` or `sex=Male`; else empty
  int64_t vocabulary = 0;            ///< of ids: all are below this; 0 when that is not known
  int64_t pad = -1, unknown = -1;    ///< ids that stand for nothing and for any other word; -1 when there are none
  bool channels_last = false;        ///< of an image: rows, columns, channels; else channels, rows, columns
};

struct Info {
  std::string spec;  ///< as it can be typed again
  int64_t size = 0;
  std::vector<Feature> features;
  LabelKind labels = LabelKind::kNone;
  int64_t label_width = 1;           ///< numbers or classes per sample for kNumber and kMulti
  std::vector<std::string> classes;  ///< names; "0", "1" … when the source has none; empty for kNumber and kNone
  std::vector<std::string> groups;   ///< names of the columns kept aside
  std::vector<std::string> files;    ///< what was read, for the run's record
  Preprocess preprocess;             ///< what was done to the raw values
  std::vector<std::string> notes;    ///< what the user should know, a line each: values that are missing, samples cut
};

/// Samples in the order asked for.
struct Batch {
  std::vector<at::Tensor> inputs;  ///< one per feature: count × shape
  std::vector<at::Tensor> masks;   ///< one per feature, bool count × length; undefined where nothing is padded
  at::Tensor labels;               ///< int64[count], float[count] or float[count × width]; undefined without labels
  std::vector<int64_t> samples;    ///< their positions in the data set
  int64_t count() const { return int64_t(samples.size()); }
};

/// What a person should see of a sample.
struct Display {
  enum Kind { kNone, kImage, kText } kind = kNone;
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  ///< height × width × channels (1 or 3), raw values before mean and std
  std::string text;             ///< a sentence or a row
  /// Of a row of a table: its columns beside the label and their values as the file has them.
  std::vector<std::pair<std::string, std::string>> values = {};
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  const Info& info() const { return info_; }
  int64_t size() const { return info_.size; }
  /// Any thread may call. Throws InputError when a sample is broken (names it).
  virtual Batch read(std::span<const int64_t> samples) const = 0;
  /// The user's own name for a sample; by default its number.
  virtual std::string id(int64_t sample) const { return std::to_string(sample); }
  /// Values of the columns in Info::groups.
  virtual std::vector<std::string> groups(int64_t) const { return {}; }
  virtual Display display(int64_t sample) const = 0;

 protected:
  Info info_;
};

/// Opens what a spec names. Throws InputError with a word on how to get a data set that is not there.
/// Whatever a reader fits to data (column encodings, vocabulary) is fitted on the training split of the same source.
std::unique_ptr<Dataset> open(const Spec& spec);
inline std::unique_ptr<Dataset> open(const std::string& spec) { return open(parse_spec(spec)); }

/// Only the first `count` samples of `whole`, or a part of them by position.
std::unique_ptr<Dataset> subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> samples);

/// The same samples with their classes numbered in the order of `names`, which are the names that the data has.
std::unique_ptr<Dataset> renumbered(std::shared_ptr<const Dataset> data, const std::vector<std::string>& names);

}  // namespace netmend::dataset
