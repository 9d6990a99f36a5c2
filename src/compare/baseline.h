// Earlier predictions to compare with: from a run folder that eval left, or from baseline.json, small enough to be
// committed.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "dataset/dataset.h"
#include "observers/flips.h"

namespace netmend::compare {

struct Baseline {
  std::string source;       ///< the file or folder, for messages
  std::string model;        ///< what was judged then
  std::string fingerprint;  ///< of the data
  std::string metric;
  stats::Estimate value{};                     ///< of the metric, then
  std::vector<observers::Before> predictions;  ///< in the order of the data
  std::vector<uint32_t> ids;                   ///< hashes of the inputs' names
};

uint32_t id_hash(const std::string& id);
/// Throws InputError: not a run folder of eval, not a baseline, a damaged one.
Baseline read_baseline(const std::string& path);
void write_baseline(const std::string& path, const Baseline& baseline, const observers::PredictionSettings& settings);

/// Finds the earlier prediction for each input of a data set.
class EarlierPredictions {
 public:
  /// With `common` inputs are found by their names and others are left out; without it the data must be the same.
  EarlierPredictions(const Baseline& baseline, const dataset::Dataset& data, bool common);
  const observers::Before* find(int64_t sample) const;

 private:
  const Baseline& baseline_;
  const dataset::Dataset& data_;
  bool common_;
  std::unordered_map<uint32_t, size_t> by_id_;
};

}  // namespace netmend::compare
