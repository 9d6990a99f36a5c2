#include "checks/simple_models.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/memory_error.h"
#include "base/text.h"
#include "census/census.h"
#include "findings/phrases.h"
#include "stream/pass.h"

namespace netmend::checks {
namespace {

using observers::SampleRow;

constexpr int64_t kFitted = 2000, kEnoughToFit = 100;
constexpr int64_t kRemembered = 6000, kJudgedOn = 3000;  ///< neighbours, tests
constexpr double kMostValues = 1e8;                      ///< that are read of training data or tests
constexpr int64_t kNeighbours = 5, kAtOnce = 256;
constexpr double kAsHard = 0.5;        ///< of the network's log odds ratio, or of its rate
constexpr int64_t kEnough = 30;        ///< inputs, to say so
constexpr int64_t kWidest = 4096;      ///< values of an input
constexpr int64_t kTokenKinds = 4096;  ///< tokens share places beyond
constexpr int64_t kSide = 32;          ///< of images

/// Inputs × values.
at::Tensor features_of(const dataset::Dataset& data, const std::vector<int64_t>& samples, at::Tensor& labels) {
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

/// Read in parts: what is kept is smaller than images may be.
at::Tensor all_features(const dataset::Dataset& data, const std::vector<int64_t>& samples, at::Tensor& labels) {
  std::vector<at::Tensor> parts, truths;
  for (size_t at = 0; at < samples.size(); at += size_t(kAtOnce)) {
    const size_t end = std::min(samples.size(), at + size_t(kAtOnce));
    at::Tensor truth;
    parts.push_back(features_of(data, {samples.begin() + int64_t(at), samples.begin() + int64_t(end)}, truth));
    truths.push_back(truth);
  }
  labels = at::cat(truths);
  return at::cat(parts);
}

/// Predicted classes of the best of three ridges: it is a bar to pass. `labels` of the fitted, `truth` of the judged.
at::Tensor ridge(at::Tensor x, const at::Tensor& z, const at::Tensor& labels, const at::Tensor& truth,
                 int64_t classes) {
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
  int64_t most = -1;
  at::Tensor best;
  for (const double ridge : {0.03, 0.3, 3.0}) {
    at::Tensor lower = at::linalg_cholesky(gram + ridge * at::eye(gram.size(0), at::kDouble));
    at::Tensor predicted = (across.matmul(at::cholesky_solve(target, lower)) + centre).argmax(1);
    if (const int64_t right = (predicted == truth).sum().item<int64_t>(); right > most) most = right, best = predicted;
  }
  return best;
}

/// Classes by the vote of the nearest inputs; the nearest decides a tie.
at::Tensor vote(const at::Tensor& x, const at::Tensor& z, const at::Tensor& labels, int64_t classes) {
  const at::Tensor size = x.square().sum(1);
  at::Tensor predicted = at::empty({z.size(0)}, at::kLong);
  for (int64_t at = 0; at < z.size(0); at += kAtOnce) {
    const int64_t end = std::min(z.size(0), at + kAtOnce);
    const at::Tensor near = at::addmm(size, z.slice(0, at, end), x.t(), 1, -2);  // less the judged one's own size
    const at::Tensor which = std::get<1>(near.topk(kNeighbours, 1, false));
    at::Tensor votes = at::zeros({end - at, classes + 1}, at::kFloat);
    const at::Tensor names = labels.index_select(0, which.flatten()).reshape(which.sizes());
    const at::Tensor known = at::where((names >= 0).logical_and(names < classes), names, at::full_like(names, classes));
    const at::Tensor weights = at::tensor({1.05f, 1.04f, 1.03f, 1.02f, 1.01f}).expand({end - at, kNeighbours});
    votes.scatter_add_(1, known, weights);
    predicted.slice(0, at, end).copy_(votes.slice(1, 0, classes).argmax(1));
  }
  return predicted;
}

int64_t fitting(const dataset::Dataset& data, int64_t most) {
  double values = 0;
  for (const dataset::Feature& feature : data.info().features) {
    double one = 1;
    for (int64_t side : feature.shape) one *= double(std::max<int64_t>(1, side));
    values += one;
  }
  return std::clamp(int64_t(kMostValues / std::max(1.0, values)), std::min<int64_t>(most, 500), most);
}

std::optional<SimpleModels> fit_simple(Observed& seen) {
  if (!seen.settings.by_class() || !seen.test || !seen.test->data) return {};
  const dataset::Dataset& tests = *seen.test->data;
  const auto classes = int64_t(seen.settings.classes.size());
  if (tests.info().labels != dataset::LabelKind::kClass || classes < 2 || classes > 1000) return {};
  const dataset::Dataset* trains = seen.train && seen.train->data ? seen.train->data.get() : nullptr;
  if (trains && (trains->info().classes != tests.info().classes || trains->size() < kEnoughToFit)) trains = nullptr;
  // Two of three tests where there is no training data: those that are judged are not among the fitted.
  std::vector<int64_t> fitted;
  SimpleModels models;
  if (trains) {
    fitted = stream::spread(trains->size(), fitting(*trains, kRemembered));
    models.judged = stream::spread(tests.size(), fitting(tests, kJudgedOn));
  } else {
    for (int64_t at : stream::spread(tests.size(), fitting(tests, kRemembered + kJudgedOn)))
      (fitted.size() > 2 * models.judged.size() ? models.judged : fitted).push_back(at);
  }
  if (int64_t(fitted.size()) < kEnoughToFit || int64_t(models.judged.size()) < kEnoughToFit) return {};
  at::NoGradGuard no_grad;
  at::Tensor labels, truth;
  at::Tensor x = all_features(trains ? *trains : tests, fitted, labels), z = all_features(tests, models.judged, truth);
  if (x.size(1) != z.size(1)) return {};
  const at::Tensor mean = x.mean(0), spread = x.std(0);
  const at::Tensor least = spread.clamp_min(1e-3 * std::max(1e-6, x.std().item<double>()));
  // What hardly varies in most inputs must not decide who is near.
  const at::Tensor usual = spread.clamp_min(std::max(1e-6, 0.5 * spread.median().item<double>()));
  auto scaled = [&](const at::Tensor& of, const at::Tensor& by) { return ((of - mean) / by).clamp(-5, 5); };
  std::vector<int64_t> some = stream::spread(x.size(0), kFitted);
  const at::Tensor chosen = at::tensor(some, at::kLong);
  const at::Tensor linear = ridge(scaled(x.index_select(0, chosen), least), scaled(z, least),
                                  labels.index_select(0, chosen).contiguous(), truth, classes);
  const at::Tensor near = vote(scaled(x, usual), scaled(z, usual), labels, classes);
  const auto count = int64_t(models.judged.size());
  models.linear = stats::rate((linear == truth).sum().item<int64_t>(), count);
  models.neighbours = stats::rate((near == truth).sum().item<int64_t>(), count);
  models.by_neighbours = models.neighbours.value > models.linear.value;
  const at::Tensor& better = models.by_neighbours ? near : linear;
  models.predicted.assign(better.data_ptr<int64_t>(), better.data_ptr<int64_t>() + count);
  return models;
}

/// Failures among some inputs.
struct Failing {
  int64_t inputs = 0, wrong = 0;
  void add(bool is_wrong) { ++inputs, wrong += is_wrong; }
  double rate() const { return double(wrong) / double(std::max<int64_t>(1, inputs)); }
  double log_odds() const { return std::log((double(wrong) + 0.5) / (double(inputs - wrong) + 0.5)); }
};

}  // namespace

std::string SimpleModels::name() const { return by_neighbours ? "A nearest-neighbour classifier" : "A linear model"; }

const SimpleModels* simple_models(Observed& seen) {
  if (!seen.simple_tried) {
    seen.simple_tried = true;
    try {
      if (auto models = fit_simple(seen)) seen.simple = std::make_shared<SimpleModels>(std::move(*models));
    } catch (const MemoryError&) {
      throw;
    } catch (const InputError&) {        // data that cannot be read so
    } catch (const c10::LinAlgError&) {  // equations that cannot be solved
    }
  }
  return seen.simple.get();
}

std::optional<stats::Estimate> linear_baseline(Observed& seen) {
  const SimpleModels* models = simple_models(seen);
  return models ? std::optional(models->linear) : std::nullopt;
}

std::string as_hard_for_simple(Observed& seen, const std::function<int(size_t)>& part,
                               const std::vector<SampleRow>* judged) {
  const std::vector<SampleRow>& rows = judged ? *judged : seen.test->rows;
  const SimpleModels* models = simple_models(seen);
  if (!models) return "";
  Failing own[2], simple[2];
  for (size_t i = 0; i < models->judged.size(); ++i) {
    const auto at = size_t(models->judged[i]);
    const int which = at < rows.size() ? part(at) : -1;
    if (which < 0 || rows[at].right == SampleRow::kNotJudged) continue;
    own[which].add(rows[at].right == SampleRow::kWrong);
    simple[which].add(double(models->predicted[i]) != rows[at].label);
  }
  if (own[1].inputs < kEnough || own[0].inputs < kEnough) return "";
  const double behind = own[1].log_odds() - own[0].log_odds(), theirs = simple[1].log_odds() - simple[0].log_odds();
  if (theirs <= 0 || theirs < kAsHard * behind) return "";
  return fmt::format(" {} has accuracy {} there and {} elsewhere, so these inputs are harder for simple models too.",
                     models->name(), findings::percent(1 - simple[1].rate()), findings::percent(1 - simple[0].rate()));
}

std::string as_confused_by_simple(Observed& seen, size_t label, size_t predicted,
                                  const std::vector<SampleRow>* judged) {
  const std::vector<SampleRow>& rows = judged ? *judged : seen.test->rows;
  const SimpleModels* models = simple_models(seen);
  if (!models) return "";
  Failing own, simple;
  for (size_t i = 0; i < models->judged.size(); ++i) {
    const auto at = size_t(models->judged[i]);
    if (at >= rows.size() || rows[at].label != double(label) || rows[at].right == SampleRow::kNotJudged) continue;
    own.add(rows[at].predicted == double(predicted));
    simple.add(models->predicted[i] == int64_t(predicted));
  }
  if (own.inputs < kEnough || simple.wrong == 0 || simple.rate() < kAsHard * own.rate()) return "";
  return fmt::format(" {} makes the same mistake on {} of {}: the two classes look alike.", models->name(),
                     with_commas(simple.wrong), findings::counted(simple.inputs, "input"));
}

}  // namespace netmend::checks
