// data.json of a saved data set: what docs/formats.md says, checked before anything else is believed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/array.h"
#include "dataset/dataset.h"

namespace netmend::dataset {

struct SavedInput {
  std::string name;
  Element type = Element::kF32;
  std::vector<int64_t> shape;        ///< of one sample
  bool ragged = false;               ///< the first size is -1: it differs from sample to sample
  std::vector<std::string> columns;  ///< of a row of a table: what each value is; else empty
};

struct SavedPart {
  std::string path;
  int64_t first = 0, samples = 0;  ///< in the whole set
  int64_t bytes = 0;
  uint32_t checksum = 0;
};

struct SavedIndex {
  std::string file;
  int64_t samples = 0;
  std::vector<SavedInput> inputs;
  LabelKind labels = LabelKind::kNone;
  int64_t label_width = 1;
  std::vector<std::string> classes, groups;
  Display::Kind display = Display::kNone;
  std::vector<SavedPart> parts;  ///< at least one

  /// The part that holds a sample.
  size_t part_of(int64_t sample) const;
};

/// Reads FOLDER/data.json. Throws InputError that names the key: not finished, another version, counts that do not add
/// up, impossible sizes, parts that lie outside the folder, are missing or have another size than was written.
SavedIndex read_saved_index(const std::string& folder);

}  // namespace netmend::dataset
