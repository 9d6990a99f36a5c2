#include "observers/surprise/lsa.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "observers/coverage/profile.h"
#include "observers/surprise/surprise_scores.h"

namespace netmend::observers {

Lsa::Lsa(const ClassTraces& training, double least_variance) : all_units_(training.values.size(1)) {
  at::NoGradGuard no_grad;
  at::Tensor varied = at::ones({all_units_}, at::kBool);
  for (int64_t c = 0; c < training.classes(); ++c)
    if (training.size(c) >= 2) varied &= training.of(c).to(at::kDouble).var(0, false) >= least_variance;
  units_ = varied.nonzero().squeeze(1);
  for (int64_t c = 0; c < training.classes(); ++c) {
    Density density;
    const int64_t count = training.size(c);
    if (count >= 2 && units() > 0) {
      at::Tensor values = training.of(c).index_select(1, units_).to(at::kDouble);
      density.mean = values.mean(0);
      values.sub_(density.mean);
      const double width = std::pow(double(count), -1.0 / (double(units()) + 4));
      at::Tensor covariance = at::mm(values.t(), values).mul_(width * width / double(count - 1));
      double added = 0;
      density.factor = factor_covariance(covariance, added);
      regularised_ += density.factor.defined() && added > 0;
    }
    if (!density.factor.defined()) {
      without_ += count > 0;
      densities_.push_back({});
      continue;
    }
    density.constant = std::log(double(count)) + density.factor.diagonal().log().sum().item<double>() +
                       double(units()) / 2 * std::log(2 * std::numbers::pi);
    density.points = decorrelate(density, training.of(c));
    density.halves = density.points.square().sum(0).mul_(0.5);
    densities_.push_back(std::move(density));
  }
}

at::Tensor Lsa::decorrelate(const Density& density, const at::Tensor& traces) const {
  at::Tensor centred = traces.index_select(1, units_).to(at::kDouble).sub_(density.mean);
  return at::linalg_solve_triangular(density.factor, centred.t(), /*upper=*/false).contiguous();
}

std::vector<double> Lsa::scores(const ClassTraces& traces, int jobs) const {
  constexpr int64_t kBlock = 64;  // a block's kernels stay in the cache
  struct Item {
    int64_t c, first, count;
  };
  std::vector<Item> items;
  for (int64_t c = 0; c < std::min<int64_t>(traces.classes(), int64_t(densities_.size())); ++c)
    for (int64_t at = 0; densities_[size_t(c)].mean.defined() && at < traces.size(c); at += kBlock)
      items.push_back({c, traces.starts[size_t(c)] + at, std::min(kBlock, traces.size(c) - at)});
  std::vector<double> scores(size_t(traces.source_rows), kNoScore);
  share_out(int64_t(items.size()), jobs, [&](int64_t i) {
    const Item& item = items[size_t(i)];
    const Density& density = densities_[size_t(item.c)];
    at::Tensor block = decorrelate(density, traces.values.narrow(0, item.first, item.count));
    // −½|x − p|² = x·p − ½|p|² − ½|x|², the last of which comes out of the sum.
    at::Tensor kernels = at::addmm(density.halves.neg(), block.t(), density.points);
    at::Tensor most = kernels.amax(1, true);
    at::Tensor sums = kernels.sub_(most).exp_().sum(1).log_().add_(most.squeeze(1));
    at::Tensor result = block.square().sum(0).mul_(0.5).sub_(sums).add_(density.constant);
    for (int64_t row = 0; row < item.count; ++row) {
      const double score = result.data_ptr<double>()[row];
      scores[size_t(traces.rows[size_t(item.first + row)])] = std::isfinite(score) ? score : kNoScore;
    }
  });
  return scores;
}

namespace {

/// The smallest score of a training input; infinite when none has one.
double lowest_score(const Lsa& lsa, const SurpriseMaterials& m) {
  if (m.facts && std::isfinite(m.facts->likelihood_low)) return m.facts->likelihood_low;
  double low = INFINITY;
  for (double score : lsa.scores(m.training, m.jobs))
    if (std::isfinite(score)) low = std::min(low, score);
  if (m.facts) m.facts->likelihood_low = low;
  return low;
}

SurpriseScores score_by_likelihood(const SurpriseMaterials& m) {
  constexpr double kHigh = 2000;  // as published
  SurpriseScores found{"LSA", 0, kHigh, {}};
  const Lsa lsa(m.training);
  if (lsa.units() == 0) {
    found.skipped = "no unit of the layer varies within every class, so that there is no density";
    return found;
  }
  if (lsa.units() < lsa.all_units())
    found.notes.push_back(fmt::format("LSC looks at {} of {} units: the others hardly vary within some class",
                                      lsa.units(), lsa.all_units()));
  if (lsa.regularised() > 0)
    found.notes.push_back(fmt::format("LSC: the covariance of {} class{} is singular and was widened a little",
                                      lsa.regularised(), lsa.regularised() == 1 ? "" : "es"));
  found.low = lowest_score(lsa, m);
  if (std::isfinite(found.low))
    found.scores = lsa.scores(m.tests, m.jobs);
  else
    found.skipped = "no training input has a density";
  return found;
}

}  // namespace

CriterionRow lsc_row() {
  return {.name = "LSC",
          .full_name = "likelihood-based surprise coverage",
          .asks = "surprise by likelihood: every degree of it",
          .reference = "Kim, Feldt, Yoo: Guiding Deep Learning System Testing using Surprise Adequacy, ICSE 2019",
          .also = "LSA",
          .parameter = {"buckets", 1000, true, 2},
          .needs = {.training = true},
          .fine = true,
          .score = score_by_likelihood};
}

}  // namespace netmend::observers
