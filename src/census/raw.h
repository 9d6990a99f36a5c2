// Values as the source has them: what scale, mean and std did is undone, and columns of tables get their units back.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::census {

/// raw = fed · factor + offset.
struct Line {
  double factor = 1, offset = 0;
  double raw(double fed) const { return fed * factor + offset; }
};

/// One for all values of a feature, or one per channel of an image, from what the reader says that it did.
std::vector<Line> undo_preprocessing(const dataset::Info& info, const dataset::Feature& feature);

/// A column of a table as a person knows it: a number in its own units, or a word that was spread over several columns.
struct SourceColumn {
  std::string name;
  std::vector<int64_t> places;     ///< one, or one per category
  std::vector<std::string> words;  ///< of categories, in the order of `places`; empty for numbers
  Line line;                       ///< of numbers
  bool in_units = true;            ///< `line` leads back to the source's units
  bool is_category() const { return !words.empty(); }
};

/// Columns `sex=Female`, `sex=Male` become one again. Readers standardise numbers without saying by how much; what a
/// few rows show in words tells it. Columns without names are numbered.
std::vector<SourceColumn> source_columns(const dataset::Dataset& data, size_t feature);

}  // namespace netmend::census
