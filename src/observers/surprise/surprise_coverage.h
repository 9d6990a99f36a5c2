// Surprise coverage (LSC, DSC, MDSC): the range of surprise is cut into buckets, and a bucket counts when an input
// falls into it. Kim, Feldt, Yoo: Guiding Deep Learning System Testing using Surprise Adequacy, ICSE 2019.
//
// The range is fixed before tests are seen, and what lies outside is told, not counted. SADL's program begins at the
// smallest test value, so that its edge moves with the data, counts one bucket for all beyond the end, and ends at 2000
// for distances too; DeepImportance's does the same but for that end; NLC's counts different multiples of a step,
// without end; dnn-tip's begins at 0.
#pragma once

#include <cstdint>
#include <vector>

#include "observers/coverage/criterion.h"

namespace netmend::observers {

class SurpriseCoverage {
 public:
  SurpriseCoverage(std::string name, double low, double high, int64_t buckets = 1000,
                   Published published = Published::kCorrected)
      : name_(std::move(name)), low_(low), high_(high), buckets_(buckets), published_(published) {}
  /// The bucket of each score; -1 for none.
  std::vector<int64_t> places(const std::vector<double>& scores) const;
  Figure figure(const std::vector<double>& scores) const;

 private:
  std::string name_;
  double low_, high_;
  int64_t buckets_;
  Published published_;
};

}  // namespace netmend::observers
