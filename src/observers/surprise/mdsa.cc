#include "observers/surprise/mdsa.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "observers/surprise/surprise_scores.h"

namespace netmend::observers {

Mdsa::Mdsa(const ClassTraces& training, Published published) : published_(published) {
  at::NoGradGuard no_grad;
  const bool one = published == Published::kDnnTip;
  for (int64_t c = 0; c < (one ? 1 : training.classes()); ++c) {
    at::Tensor values = (one ? training.values : training.of(c)).to(at::kDouble);
    Spread spread;
    if (values.size(0) >= 2) {
      spread.mean = values.mean(0);
      values = values - spread.mean;
      double added = 0;
      spread.factor = factor_covariance(at::mm(values.t(), values).div_(double(values.size(0))), added);
      regularised_ += spread.factor.defined() && added > 0;
    }
    without_ += values.size(0) > 0 && !spread.factor.defined();
    spreads_.push_back(std::move(spread));
  }
}

std::vector<double> Mdsa::scores(const ClassTraces& traces) const {
  at::NoGradGuard no_grad;
  std::vector<double> scores(size_t(traces.source_rows), kNoScore);
  const bool one = published_ == Published::kDnnTip;
  for (int64_t c = 0; c < traces.classes(); ++c) {
    if (!one && c >= int64_t(spreads_.size())) break;
    const Spread& spread = spreads_[size_t(one ? 0 : c)];
    if (!spread.factor.defined() || traces.size(c) == 0) continue;
    at::Tensor centred = traces.of(c).to(at::kDouble) - spread.mean;
    at::Tensor squared =
        at::linalg_solve_triangular(spread.factor, centred.t(), /*upper=*/false).square().sum(0).contiguous();
    for (int64_t row = 0; row < traces.size(c); ++row) {
      const double value = squared.data_ptr<double>()[row];
      if (std::isfinite(value))
        scores[size_t(traces.rows[size_t(traces.starts[size_t(c)] + row)])] = one ? value : std::sqrt(value);
    }
  }
  return scores;
}

CriterionRow mdsc_row() {
  return {.name = "MDSC",
          .full_name = "Mahalanobis-distance-based surprise coverage",
          .asks = "surprise by spread of the class: every degree of it",
          .reference = "Kim, Ju, Feldt, Yoo: Reducing DNN Labelling Cost using Surprise Adequacy, FSE 2020",
          .also = "MDSA",
          .parameter = {"buckets", 1000, true, 2},
          .needs = {.training = true},
          .fine = true,
          .score = [](const SurpriseMaterials& m) {
            SurpriseScores found{"MDSA", 0, 0, {}};
            const Mdsa mdsa(m.training, m.published);
            for (double score : mdsa.scores(m.training))
              if (std::isfinite(score)) found.high = std::max(found.high, score);
            if (found.high > 0)
              found.scores = mdsa.scores(m.tests);
            else
              found.skipped = "training inputs do not spread within any class";
            return found;
          }};
}

}  // namespace netmend::observers
