// How surprising tests are by one measure, as the table of criteria asks for it: each measure gives scores and the
// range that its coverage is taken over (surprise_coverage.h).
#pragma once

#include <string>
#include <vector>

#include "observers/coverage/criterion.h"
#include "observers/coverage/row.h"
#include "observers/surprise/class_traces.h"

namespace netmend::observers {

struct ProfileFacts;

struct SurpriseMaterials {
  const ClassTraces& training;
  const ClassTraces& tests;
  Published published = Published::kCorrected;
  int jobs = 0;
  /// Where extremes on training data are looked up and noted; null where traces are not sorted as they were for these.
  ProfileFacts* facts = nullptr;
};

struct SurpriseScores {
  std::string name;            ///< LSA
  double low = 0, high = 0;    ///< the range of scores that is cut into buckets
  std::vector<double> scores;  ///< one per test; kNoScore where there is none
  std::vector<std::string> notes = {};
  std::string skipped = "";  ///< why there are none
};

}  // namespace netmend::observers
