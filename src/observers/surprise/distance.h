// DSA, distance-based surprise: how far an input's trace is from the nearest training trace that was answered alike,
// against how far that one is from the nearest that was answered otherwise. Kim, Feldt, Yoo: Guiding Deep Learning System
// Testing using Surprise Adequacy, ICSE 2019. NLC's program measures the second distance from the input itself and
// takes labels for answers.
//
// Squared distances come from blocks of matrix products in float; every candidate that rounding could have hidden is
// measured again in double, so the nearest is the nearest. The second search runs over the distinct nearest traces.
#pragma once

#include "observers/coverage/criterion.h"
#include "observers/surprise/class_traces.h"

namespace netmend::observers {

class DistanceSurprise {
 public:
  /// `training` outlives it.
  explicit DistanceSurprise(const ClassTraces& training, Published published = Published::kCorrected);
  /// One a row of the source of `traces`; kNoScore where the class has no training inputs, where there is no other
  /// class, or where the second distance is 0.
  std::vector<double> scores(const ClassTraces& traces, int jobs = 0) const;

 private:
  const ClassTraces& training_;
  Published published_;
  at::Tensor middle_, centred_;  ///< the mean trace, and training traces from there
  std::vector<float> squares_;   ///< squared norms of those
};

/// Nearest rows by Euclidean distance.
struct Nearest {
  int64_t row = -1;  ///< of the base; the first of equally near ones
  double squared = std::numeric_limits<double>::infinity();
};
/// For each query the nearest of rows from … to of the base, kept where it is nearer than what is there. `squares`:
/// squared norms of all rows of the base.
void search_nearest(const at::Tensor& queries, const at::Tensor& base, const std::vector<float>& squares, int64_t from,
                    int64_t to, Nearest* nearest);

}  // namespace netmend::observers
