// Is it the same data? A fingerprint of a data set that does not change with preprocessing: its size, labels, names,
// and what a person sees of a few inputs.
#pragma once

#include <string>
#include <vector>

#include "base/hash.h"
#include "dataset/dataset.h"
#include "observers/predictions.h"

namespace netmend::session {

class Fingerprint {
 public:
  /// Rows in the order of the data.
  void add(const std::vector<observers::SampleRow>& rows);
  std::string finish(const dataset::Dataset& data) const;

 private:
  Hasher labels_;
};

}  // namespace netmend::session
