// Traces of inputs sorted by class, as surprise looks at them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "observers/coverage/units.h"

namespace netmend::observers {

/// An input without a score: its class has no training inputs to be compared with, or a value of it is not a number.
constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

struct ClassTraces {
  at::Tensor values;               ///< float inputs × units, one class after the other
  std::vector<int64_t> starts{0};  ///< of each class, and the end
  std::vector<int64_t> rows;       ///< which row of the source each one was
  int64_t source_rows = 0;

  int64_t classes() const { return int64_t(starts.size()) - 1; }
  int64_t size(int64_t c) const { return starts[size_t(c + 1)] - starts[size_t(c)]; }
  at::Tensor of(int64_t c) const;
};

/// By the class that each input was answered with, or by its label. With `classes` below 2 all are of one class. Inputs
/// with values that are not numbers, or without a class, are left out.
ClassTraces sort_by_class(const UnitBatch& traces, int64_t classes, bool by_label);

/// A Cholesky factor of a covariance, which may be singular: then a growing multiple of the identity is added, from
/// 1e-10 of the mean variance on. `added` says how much. Undefined when all variances are 0.
at::Tensor factor_covariance(const at::Tensor& covariance, double& added);

/// Runs work on numbered items over some workers (0: one a core) with LibTorch set up for it.
void share_out(int64_t items, int jobs, const std::function<void(int64_t item)>& work);

}  // namespace netmend::observers
