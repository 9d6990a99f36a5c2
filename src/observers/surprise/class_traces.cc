#include "observers/surprise/class_traces.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "base/pool.h"
#include "executor/runtime.h"

namespace netmend::observers {

at::Tensor ClassTraces::of(int64_t c) const { return values.narrow(0, starts[size_t(c)], size(c)); }

namespace {

bool all_finite(const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(values[i])) return false;
  return true;
}

/// -1 for none.
int64_t class_of(const SampleRow& row, int64_t classes, bool by_label) {
  if (classes < 2) return 0;
  const double number = by_label ? row.label : row.predicted;
  return number >= 0 && number < double(classes) ? int64_t(number) : -1;
}

}  // namespace

ClassTraces sort_by_class(const UnitBatch& traces, int64_t classes, bool by_label) {
  classes = std::max<int64_t>(classes, 1);
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(classes));
  for (int64_t row = 0; row < traces.count(); ++row) {
    const int64_t c = class_of(traces.rows[size_t(row)], classes, by_label);
    if (c >= 0 && all_finite(traces.input(row), traces.units)) members[size_t(c)].push_back(row);
  }
  ClassTraces sorted;
  sorted.source_rows = traces.count();
  for (const auto& group : members) {
    sorted.rows.insert(sorted.rows.end(), group.begin(), group.end());
    sorted.starts.push_back(int64_t(sorted.rows.size()));
  }
  sorted.values = at::empty({int64_t(sorted.rows.size()), traces.units}, at::kFloat);
  float* to = sorted.values.data_ptr<float>();
  for (int64_t row : sorted.rows) to = std::copy_n(traces.input(row), traces.units, to);
  return sorted;
}

at::Tensor factor_covariance(const at::Tensor& covariance, double& added) {
  const int64_t size = covariance.size(0);
  const double mean_variance = covariance.trace().item<double>() / double(std::max<int64_t>(size, 1));
  added = 0;
  if (!(mean_variance > 0) || !std::isfinite(mean_variance)) return {};
  for (double lambda = 0; lambda <= mean_variance; lambda = lambda == 0 ? 1e-10 * mean_variance : 10 * lambda) {
    at::Tensor shifted = covariance.clone();
    shifted.diagonal().add_(lambda);
    auto [factor, info] = at::linalg_cholesky_ex(shifted, false, false);
    const double least = info.item<int64_t>() == 0 ? factor.diagonal().min().item<double>() : 0;
    added = lambda;
    // A factor that lives on rounding alone is no better than none.
    if (least * least > 1e-13 * mean_variance) return factor;
  }
  return {};
}

void share_out(int64_t items, int jobs, const std::function<void(int64_t item)>& work) {
  in_order(
      items, jobs > 0 ? jobs : cores(), [](int) { executor::enter_worker(); },
      [&](int64_t item, int) {
        at::NoGradGuard no_grad;
        work(item);
      },
      [](int64_t) {});
}

}  // namespace netmend::observers
