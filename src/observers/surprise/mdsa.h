// MDSA, Mahalanobis-based surprise: how far an input's trace is from the mean of training inputs that were answered
// alike, measured by their covariance. Kim, Ju, Feldt, Yoo: Reducing DNN Labelling Cost using Surprise Adequacy, FSE
// 2020. dnn-tip's program gives squared distances from one mean of all classes; NLC's takes labels for answers.
#pragma once

#include "observers/coverage/criterion.h"
#include "observers/coverage/row.h"
#include "observers/surprise/class_traces.h"

namespace netmend::observers {

class Mdsa {
 public:
  explicit Mdsa(const ClassTraces& training, Published published = Published::kCorrected);
  /// One a row of the source of `traces`.
  std::vector<double> scores(const ClassTraces& traces) const;
  int64_t regularised() const { return regularised_; }
  int64_t without() const { return without_; }

 private:
  struct Spread {
    at::Tensor mean, factor;  ///< undefined: there is none
  };
  Published published_;
  std::vector<Spread> spreads_;  ///< one a class, or one for all
  int64_t regularised_ = 0, without_ = 0;
};

CriterionRow mdsc_row();

}  // namespace netmend::observers
