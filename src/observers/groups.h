// How well the network does for the groups that the data keeps aside: by camera, by hour, by sex.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "observers/result.h"
#include "observers/task.h"
#include "stats/moments.h"

namespace netmend::dataset {
class Dataset;
}

namespace netmend::observers {

struct GroupResult {
  std::string column, value;  ///< an empty value is a missing one
  int64_t samples = 0, right = 0;
  int64_t positives = 0, called = 0, found = 0;  ///< of two classes: labels, answers and both that are positive
  stats::Moments error;                          ///< absolute, for numbers
  /// Share of right answers, or the mean absolute error.
  stats::Estimate figure(const PredictionSettings& settings) const;
};

class GroupCounts {
 public:
  GroupCounts(const PredictionSettings& settings, const dataset::Dataset& data) : settings_(settings), data_(data) {}
  void add(const std::vector<SampleRow>& rows);
  /// By column as the data lists them, then by value.
  std::vector<GroupResult> results() const;

 private:
  const PredictionSettings& settings_;
  const dataset::Dataset& data_;
  std::map<std::pair<size_t, std::string>, GroupResult> groups_;
};

}  // namespace netmend::observers
