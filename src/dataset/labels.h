// Labels that lie in an array beside the samples. They are looked through once, so that a class number that cannot be
// one is found at opening and not in the middle of a pass; afterwards they are read with the samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "dataset/array.h"
#include "dataset/dataset.h"

namespace netmend::dataset {

class Labels {
 public:
  /// Options `kind` (class, number, multi) and `classes` (names). Without `kind` whole numbers in one column are
  /// classes, rows with a single 1 are classes, other rows of 0 and 1 are several classes at once.
  Labels(Array array, const std::map<std::string, std::string>& options);

  LabelKind kind() const { return kind_; }
  int64_t width() const { return width_; }
  const std::vector<std::string>& classes() const { return classes_; }
  int64_t count() const { return array_.count(); }
  at::Tensor read(std::span<const int64_t> samples) const;

 private:
  void scan(const std::string& kind);

  Array array_;
  LabelKind kind_ = LabelKind::kNone;
  int64_t columns_ = 1;   ///< in the array
  int64_t width_ = 1;     ///< of what is given out
  int64_t highest_ = -1;  ///< class number found
  std::vector<std::string> classes_;
};

/// Names from `classes=a:b:c`, else "0", "1" … Throws InputError when there are fewer names than `needed`.
std::vector<std::string> class_names(const std::map<std::string, std::string>& options, int64_t needed,
                                     std::vector<std::string> known = {});

}  // namespace netmend::dataset
