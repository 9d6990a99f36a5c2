#include "selection/core_set.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "observers/surprise/dsa.h"

namespace netmend::selection {
namespace {

/// Positions of rows that hold numbers alone.
at::Tensor finite_rows(const at::Tensor& rows) { return at::isfinite(rows).all(1).nonzero().flatten(); }

double squared_distance(const float* a, const float* b, int64_t units) {
  double sum = 0;
  for (int64_t u = 0; u < units; ++u) {
    double d = double(a[u]) - b[u];
    sum += d * d;
  }
  return sum;
}

/// Squared distances to the nearest known row.
std::vector<double> distances_to(const at::Tensor& known, const at::Tensor& rows, int jobs) {
  constexpr int64_t kBlock = 256;
  at::Tensor middle = rows.mean(0);
  observers::Points queries(rows, middle), base(known, middle);
  std::vector<observers::Nearest> nearest(size_t(rows.size(0)));
  observers::share_out((rows.size(0) + kBlock - 1) / kBlock, jobs, [&](int64_t block) {
    int64_t first = block * kBlock, count = std::min(kBlock, rows.size(0) - first);
    observers::search_nearest(queries, first, count, base, 0, known.size(0), nearest);
  });
  std::vector<double> far;
  for (const observers::Nearest& one : nearest) far.push_back(one.squared);
  return far;
}

}  // namespace

std::vector<size_t> core_set(const at::Tensor& pool, const at::Tensor& known, int64_t count, int jobs) {
  at::Tensor places = finite_rows(pool), rows = pool.index_select(0, places).to(at::kFloat).contiguous();
  const int64_t inputs = rows.size(0), units = rows.size(1);
  if (inputs == 0 || count <= 0) return {};
  const float* values = rows.data_ptr<float>();
  at::Tensor centres = known.defined() ? known.index_select(0, finite_rows(known)).to(at::kFloat).contiguous() : known;
  std::vector<double> far(size_t(inputs), std::numeric_limits<double>::infinity());
  std::vector<size_t> chosen;
  auto choose = [&](int64_t row) {
    chosen.push_back(size_t(places[row].item<int64_t>()));
    for (int64_t i = 0; i < inputs; ++i)
      far[size_t(i)] = std::min(far[size_t(i)], squared_distance(values + i * units, values + row * units, units));
    far[size_t(row)] = -1;  // never again
  };
  if (centres.defined() && centres.size(0) > 0) {
    far = distances_to(centres, rows, jobs);
  } else {
    at::Tensor away = (rows.to(at::kDouble) - rows.to(at::kDouble).mean(0)).square().sum(1).contiguous();
    const double* first = away.data_ptr<double>();
    choose(std::min_element(first, first + inputs) - first);
  }
  while (int64_t(chosen.size()) < std::min(count, inputs))
    choose(std::max_element(far.begin(), far.end()) - far.begin());
  return chosen;
}

}  // namespace netmend::selection
