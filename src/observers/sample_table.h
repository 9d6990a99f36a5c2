// One row an input, spooled to a temporary file while the pass runs, so that memory does not grow with the data.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/escape.h"
#include "observers/result.h"
#include "observers/task.h"

namespace netmend::dataset {
class Dataset;
}

namespace netmend::observers {

class SampleTable {
 public:
  /// Throws InputError when no temporary file can be made.
  SampleTable();
  void append(const std::vector<SampleRow>& rows);
  int64_t size() const { return count_; }
  /// sample, id, label, predicted, correct, confidence, loss; classes by name.
  void write_csv(const std::string& path, const PredictionSettings& settings, const dataset::Dataset& data) const;
  /// Arrays sample, label, predicted, confidence, loss.
  void write_npz(const std::string& path, const PredictionSettings& settings) const;

 private:
  void each(const std::function<void(const SampleRow&)>& visit) const;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  int64_t count_ = 0;
};

}  // namespace netmend::observers
