// LSA, likelihood-based surprise: how unlikely an input's trace is among those of training inputs that were answered
// alike, by a Gaussian kernel density with Scott's bandwidth. Kim, Feldt, Yoo: Guiding Deep Learning System Testing
// using Surprise Adequacy, ICSE 2019.
//
// As there, units whose variance is below 1e-5 in any class are left out for all. Sums of kernels are taken in
// logarithms, so that far inputs get large numbers, not infinite ones. A singular covariance, at which published
// programs stop (or overwrite its diagonal), gets a small multiple of the identity added.
#pragma once

#include "observers/coverage/row.h"
#include "observers/surprise/class_traces.h"

namespace netmend::observers {

class Lsa {
 public:
  explicit Lsa(const ClassTraces& training, double least_variance = 1e-5);

  int64_t units() const { return units_.defined() ? units_.size(0) : 0; }  ///< that are varied enough
  int64_t all_units() const { return all_units_; }
  int64_t regularised() const { return regularised_; }  ///< classes whose covariance was singular
  int64_t without() const { return without_; }          ///< classes with training inputs but no density
  /// One a row of the source of `traces`; kNoScore for those that cannot be scored.
  std::vector<double> scores(const ClassTraces& traces, int jobs = 0) const;

 private:
  struct Density {
    at::Tensor mean;    ///< double units; undefined: there is no density
    at::Tensor factor;  ///< lower Cholesky factor of the kernel's covariance
    at::Tensor points;  ///< double units × inputs, decorrelated
    at::Tensor halves;  ///< half the squared norm of each
    double constant = 0;
  };
  at::Tensor decorrelate(const Density& density, const at::Tensor& traces) const;
  at::Tensor units_;  ///< numbers of the units that are used
  int64_t all_units_ = 0, regularised_ = 0, without_ = 0;
  std::vector<Density> densities_;
};

CriterionRow lsc_row();

}  // namespace netmend::observers
