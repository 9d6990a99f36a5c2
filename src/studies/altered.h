// A data set with something wrong about it: samples left out, repeated or mixed in, labels exchanged, values changed,
// a column added. For faults that are planted on purpose.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::studies {

struct Alteration {
  /// Which samples, in order: of the first source those from 0 on, of the second those behind them. Empty: all of the
  /// first.
  std::vector<int64_t> samples;
  std::shared_ptr<const dataset::Dataset> other;  ///< the second source, or null
  std::function<void(dataset::Batch&, std::span<const int64_t> rows)>
      change;                                     ///< values and labels; `rows` are its own positions
  std::string column;                             ///< of groups, added; "" for none
  std::function<std::string(int64_t row)> value;  ///< of that column
};

std::shared_ptr<const dataset::Dataset> altered(std::shared_ptr<const dataset::Dataset> data, Alteration alteration);

}  // namespace netmend::studies
