// Labels that lie in an array beside the samples. They are looked through once, so that a class number that cannot be
// one is found at opening and not in the middle of a pass; afterwards they are read with the samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dataset/array.h"
#include "dataset/dataset.h"

namespace netmend::dataset {

/// Labels as numbers, and the names that the numbers stand for when the source had words.
struct LabelArray {
  Array numbers;
  std::vector<std::string> names;
  LabelArray(Array numbers, std::vector<std::string> names = {})
      : numbers(std::move(numbers)), names(std::move(names)) {}
};

/// Labels in an NPY file: numbers, or words, which become numbers by the order of `classes=` or else of the alphabet.
/// Throws InputError with the sample when a word is not among `classes=`.
LabelArray read_label_array(const BytesPtr& npy, const std::map<std::string, std::string>& options);

class Labels {
 public:
  /// Options `kind` (class, number, multi), `classes` (names) and `first` (the number that the first class has in the
  /// file). Without `kind` whole numbers in one column are classes, rows with a single 1 are classes, other rows of 0
  /// and 1 are several classes at once.
  Labels(LabelArray labels, const std::map<std::string, std::string>& options);

  LabelKind kind() const { return kind_; }
  int64_t width() const { return width_; }
  const std::vector<std::string>& classes() const { return classes_; }
  int64_t count() const { return array_.count(); }
  at::Tensor read(std::span<const int64_t> samples) const;

 private:
  void scan(const std::string& kind);
  void check_first(const std::map<std::string, std::string>& options) const;

  Array array_;
  LabelKind kind_ = LabelKind::kNone;
  int64_t columns_ = 1;                        ///< in the array
  int64_t width_ = 1;                          ///< of what is given out
  int64_t first_ = 0;                          ///< what the first class is called in the array
  int64_t lowest_ = INT64_MAX, highest_ = -1;  ///< class numbers found
  std::vector<std::string> classes_;
};

/// Names as the classes of a source that gives no order: numbers in their order, otherwise that of the alphabet.
std::vector<std::string> sorted_classes(const std::set<std::string>& names);

/// Names from `classes=a:b:c`, else "0", "1" … Throws InputError when there are fewer names than `needed`.
std::vector<std::string> class_names(const std::map<std::string, std::string>& options, int64_t needed,
                                     std::vector<std::string> known = {});

}  // namespace netmend::dataset
