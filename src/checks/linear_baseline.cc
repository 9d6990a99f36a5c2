#include "checks/linear_baseline.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "census/census.h"
#include "stream/pass.h"

namespace netmend::checks {
namespace {

constexpr int64_t kFitted = 2000, kJudgedOn = 1000, kEnoughToFit = 100;
constexpr int64_t kWidest = 4096;      ///< values of an input
constexpr int64_t kTokenKinds = 4096;  ///< tokens share places beyond
constexpr int64_t kSide = 32;          ///< of images

/// Inputs × values.
at::Tensor linear_features(const dataset::Dataset& data, const std::vector<int64_t>& samples, at::Tensor& labels) {
  const dataset::Batch batch = data.read(samples);
  const int64_t count = batch.count();
  labels = batch.labels.to(at::kLong).contiguous();
  std::vector<at::Tensor> parts;
  for (size_t f = 0; f < batch.inputs.size(); ++f) {
    const dataset::Feature& feature = data.info().features[f];
    at::Tensor values = batch.inputs[f].slice(0, 0, count).to(at::kCPU);
    if (feature.type == at::kLong) {
      at::Tensor there = at::zeros({count, kTokenKinds}, at::kFloat);
      const at::Tensor mask = f < batch.masks.size() ? batch.masks[f] : at::Tensor();
      for (int64_t i = 0; i < count; ++i)
        for (int64_t token : census::tokens_of(feature, values[i].flatten(), mask.defined() ? mask[i] : mask))
          there.data_ptr<float>()[i * kTokenKinds + ((token % kTokenKinds) + kTokenKinds) % kTokenKinds] = 1;
      parts.push_back(there);
      continue;
    }
    values = values.to(at::kFloat).nan_to_num(0, 0, 0);
    if (feature.image && values.dim() == 4) {
      if (feature.channels_last) values = values.permute({0, 3, 1, 2});
      if (values.size(2) > kSide || values.size(3) > kSide)
        values = at::adaptive_avg_pool2d(values.contiguous(),
                                         {std::min(kSide, values.size(2)), std::min(kSide, values.size(3))});
    }
    values = values.reshape({count, -1});
    if (values.size(1) > kWidest) values = values.slice(1, 0, values.size(1), (values.size(1) + kWidest - 1) / kWidest);
    parts.push_back(values);
  }
  return at::cat(parts, 1);
}

std::optional<stats::Estimate> fit_linear(Observed& seen) {
  if (!seen.settings.by_class() || !seen.test || !seen.test->data) return {};
  const dataset::Dataset& tests = *seen.test->data;
  const auto classes = int64_t(seen.settings.classes.size());
  if (tests.info().labels != dataset::LabelKind::kClass || classes < 2 || classes > 1000) return {};
  const dataset::Dataset* trains = seen.train && seen.train->data ? seen.train->data.get() : nullptr;
  if (trains && (trains->info().classes != tests.info().classes || trains->size() < kEnoughToFit)) trains = nullptr;
  // Every other test where there is no training data: those that are judged are not among the fitted.
  std::vector<int64_t> fitted, judged;
  if (trains) {
    fitted = stream::spread(trains->size(), kFitted), judged = stream::spread(tests.size(), kJudgedOn);
  } else {
    for (int64_t at : stream::spread(tests.size(), kFitted + kJudgedOn))
      (fitted.size() > 2 * judged.size() ? judged : fitted).push_back(at);
  }
  if (int64_t(fitted.size()) < kEnoughToFit || int64_t(judged.size()) < kEnoughToFit) return {};
  at::NoGradGuard no_grad;
  at::Tensor labels, truth;
  at::Tensor x = linear_features(trains ? *trains : tests, fitted, labels), z = linear_features(tests, judged, truth);
  if (x.size(1) != z.size(1)) return {};
  const at::Tensor mean = x.mean(0), spread = x.std(0).clamp_min(1e-3 * std::max(1e-6, x.std().item<double>()));
  x = ((x - mean) / spread).clamp(-5, 5), z = ((z - mean) / spread).clamp(-5, 5);
  at::Tensor target = at::zeros({x.size(0), classes}, at::kDouble);
  for (int64_t i = 0; i < x.size(0); ++i) {
    const int64_t label = labels.data_ptr<int64_t>()[i];
    if (label >= 0 && label < classes) target.data_ptr<double>()[i * classes + label] = 1;
  }
  const at::Tensor centre = target.mean(0);
  target = target - centre;
  // As many equations as values or, in the dual, as fitted inputs, whichever are fewer; the scores are the same.
  const double width = double(x.size(1));
  at::Tensor gram, across;
  if (x.size(1) < x.size(0)) {
    gram = (x.t().matmul(x) / width).to(at::kDouble), across = z.to(at::kDouble);
    target = x.t().to(at::kDouble).matmul(target) / width;
  } else {
    gram = (x.matmul(x.t()) / width).to(at::kDouble), across = (z.matmul(x.t()) / width).to(at::kDouble);
  }
  int64_t best = -1;
  for (const double ridge : {0.03, 0.3, 3.0}) {  // the best of three: it is a bar to pass
    at::Tensor lower = at::linalg_cholesky(gram + ridge * at::eye(gram.size(0), at::kDouble));
    at::Tensor scores = across.matmul(at::cholesky_solve(target, lower)) + centre;
    best = std::max(best, (scores.argmax(1) == truth).sum().item<int64_t>());
  }
  return stats::rate(best, int64_t(judged.size()));
}

}  // namespace

std::optional<stats::Estimate> linear_baseline(Observed& seen) {
  if (!seen.linear_tried) {
    seen.linear_tried = true;
    try {
      seen.linear = fit_linear(seen);
    } catch (const std::exception&) {  // data that cannot be read so, or equations that cannot be solved
      seen.linear = std::nullopt;
    }
  }
  return seen.linear;
}

}  // namespace netmend::checks
