// DSA, distance-based surprise: how far an input's trace is from the nearest training trace that was answered alike,
// against how far that one is from the nearest that was answered otherwise. Kim, Feldt, Yoo: Guiding Deep Learning
// System Testing using Surprise Adequacy, ICSE 2019. NLC's program measures the second distance from the input itself
// and takes labels for answers.
//
// Squared distances come from blocks of matrix products in float; every candidate that rounding could have hidden is
// measured again in double, so the nearest is the nearest. The second search runs over the distinct nearest traces.
#pragma once

#include "observers/coverage/criterion.h"
#include "observers/coverage/row.h"
#include "observers/surprise/class_traces.h"

namespace netmend::observers {

/// Traces in two forms: as they are, and in float from the middle of the training traces, where products lose least.
struct Points {
  at::Tensor exact, centred;   ///< float rows × units
  std::vector<float> squares;  ///< squared norms of the centred ones
  Points() = default;
  Points(const at::Tensor& traces, const at::Tensor& middle);
  /// Some rows, in the order given.
  Points rows(const std::vector<int64_t>& which) const;
};

class Dsa {
 public:
  /// `training` outlives it.
  explicit Dsa(const ClassTraces& training, Published published = Published::kCorrected);
  /// One a row of the source of `traces`; kNoScore where the class has no training inputs, where there is no other
  /// class, or where the second distance is 0.
  std::vector<double> scores(const ClassTraces& traces, int jobs = 0) const;

 private:
  const ClassTraces& training_;
  Published published_;
  at::Tensor middle_;
  Points known_;
};

/// The nearest row by Euclidean distance.
struct Nearest {
  int64_t row = -1;  ///< of the base; the first of equally near ones
  double squared = std::numeric_limits<double>::infinity();
};
/// For `count` queries from `first` on the nearest of rows from … to of the base, where it is nearer than what is in
/// `nearest` already (one a query of all).
void search_nearest(const Points& queries, int64_t first, int64_t count, const Points& base, int64_t from, int64_t to,
                    std::vector<Nearest>& nearest);

CriterionRow dsc_row();

}  // namespace netmend::observers
