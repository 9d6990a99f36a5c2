// NPY files, NumPy's format for one array (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), in
// versions 1 to 3, either byte order, either order of axes.
#pragma once

#include <optional>
#include <string>

#include "dataset/array.h"

namespace netmend::dataset {

/// An array without samples is refused unless `may_be_empty`.
Array read_npy(BytesPtr bytes, bool may_be_empty = false);

/// A row of words of one width, as NumPy's types `<U5` (four bytes per character) and `|S5` (one) keep them.
struct WordArray {
  BytesPtr bytes;
  int64_t offset = 0, count = 0;
  int64_t characters = 0;  ///< a word; shorter ones are filled with zeros
  int64_t unit = 1;        ///< bytes per character
  bool swapped = false;

  /// In UTF-8, without the zeros at the end. Throws InputError on what is no character.
  std::string word(int64_t number) const;
};
/// The words in an NPY file of one axis (or two, the second of size 1); nothing when it holds something else.
std::optional<WordArray> read_npy_words(const BytesPtr& bytes);

}  // namespace netmend::dataset
