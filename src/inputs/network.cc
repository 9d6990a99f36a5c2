#include "inputs/network.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "model/guard.h"

namespace netmend::inputs {

using observers::Task;
using Tensors = std::vector<at::Tensor>;

at::Tensor away_from(const at::Tensor& scores, const at::Tensor& predictions) {
  at::NoGradGuard no_grad;
  at::Tensor own = predictions.unsqueeze(1);
  return at::softmax(scores.scatter(1, own, -INFINITY), 1).scatter(1, own, -1.0);
}

namespace {

model::ValueId judged_value(const observers::PredictionSettings& settings) { return settings.head.logits; }

executor::Executor make_executor(const stream::Subject& subject, std::vector<model::ValueId> wanted,
                                 executor::Mode mode) {
  return executor::Executor(subject.batching.graph, subject.request(std::move(wanted), mode));
}

at::Tensor log_odds(const at::Tensor& p) { return p.clamp(1e-30, 1).log() - (1 - p).clamp(1e-30, 1).log(); }

}  // namespace

Network::Network(const stream::Subject& subject, const observers::PredictionSettings& settings, const Subject& changed,
                 const stream::RawRange* range, std::vector<UnitPlace> units)
    : subject_(subject),
      settings_(settings),
      changed_(changed),
      range_(range),
      units_(std::move(units)),
      fast_(make_executor(subject, {judged_value(settings)}, executor::Mode::kFast)) {
  if (!range_) return;
  plain_ =
      std::make_unique<executor::Executor>(make_executor(subject, {judged_value(settings)}, executor::Mode::kPlain));
  std::vector<model::ValueId> taps;
  for (const UnitPlace& place : units_) taps.push_back(place.layer.post);
  if (!taps.empty())
    to_units_ = std::make_unique<executor::Executor>(make_executor(subject, taps, executor::Mode::kPlain));
}

Network::~Network() = default;

int64_t Network::classes() const { return settings_.task == Task::kBinary ? 2 : settings_.outputs; }

at::Tensor Network::class_scores(const at::Tensor& value) const {
  at::Tensor columns = observers::as_columns(value);
  const bool probabilities = settings_.head.without_logits();
  if (settings_.task == Task::kBinary) {
    const double limit = settings_.positive == 1 ? settings_.threshold : 1 - settings_.threshold;
    at::Tensor yes = (probabilities ? log_odds(columns) : columns) - std::log(limit / (1 - limit));
    return at::cat({at::zeros_like(yes), yes}, 1);
  }
  at::Tensor scores = probabilities ? columns.clamp_min(1e-30).log() : columns;
  if (settings_.classes.size() == 2 && settings_.threshold != 0.5 && scores.size(1) == 2) {
    at::Tensor shift = at::zeros({2}, scores.options());
    shift[settings_.positive] = std::log(settings_.threshold / (1 - settings_.threshold));
    scores = scores - shift;
  }
  return scores;
}

dataset::Batch Network::changed_batch(const Originals& inputs, const at::Tensor& units, const at::Tensor& mask) const {
  dataset::Batch batch = inputs.batch;
  batch.inputs[changed_.feature] = range_ ? range_->fed(range_->raw(units)) : units;
  if (mask.defined()) set_mask(batch, changed_, mask);
  return batch;
}

/// Inputs that go through the network together: all, or as many as the file is fixed to (filled up with the last one).
struct Network::Part {
  Originals inputs;
  at::Tensor units, rows;
  int64_t count;  ///< so many of the rows count
};

void Network::each_part(const Originals& inputs, const at::Tensor& units,
                        const std::function<void(const Part&)>& visit) const {
  stop_if_interrupted();  // methods go on for many steps
  const int64_t total = units.size(0);
  if (subject_.batching.kind == executor::Batching::kAny)
    return visit({inputs, units, at::arange(total, units.options().dtype(at::kLong)), total});
  const int64_t size = subject_.batching.kind == executor::Batching::kOne ? 1 : subject_.batching.size;
  for (int64_t first = 0; first < total; first += size) {
    const int64_t own = std::min(size, total - first);
    at::Tensor index = at::arange(first, first + size, units.options().dtype(at::kLong)).clamp_max(first + own - 1);
    visit({inputs.rows(index), units.index_select(0, index), index, own});
  }
}

at::Tensor Network::scores(const Originals& inputs, const at::Tensor& units, const at::Tensor& mask) const {
  at::NoGradGuard no_grad;
  Tensors parts;
  Originals masked = inputs;
  if (mask.defined()) set_mask(masked.batch, changed_, mask);
  model::guarded([&] { return subject_.model_name; },
                 [&] {
                   each_part(masked, units, [&](const Part& part) {
                     Tensors fed = subject_.feed.inputs(changed_batch(part.inputs, part.units));
                     parts.push_back(class_scores(fast_.run(fed)[0].to(units.device())).narrow(0, 0, part.count));
                   });
                 });
  return parts.size() == 1 ? parts[0] : at::cat(parts, 0);
}

at::Tensor Network::predictions(const Originals& inputs, const at::Tensor& units, const at::Tensor& mask) const {
  return scores(inputs, units, mask).argmax(1);
}

Network::Gradient Network::gradient(const Originals& inputs, const at::Tensor& units, const Weigh& weigh) const {
  check(plain_ != nullptr, "gradients by ids");
  at::AutoGradMode grad(true);
  Tensors scores;
  std::vector<Tensors> gradients;
  model::guarded(
      [&] { return subject_.model_name; },
      [&] {
        each_part(inputs, units.detach(), [&](const Part& part) {
          at::Tensor leaf = part.units.detach().requires_grad_();
          at::Tensor found =
              class_scores(plain_->run(subject_.feed.inputs(changed_batch(part.inputs, leaf)))[0].to(leaf.device()));
          scores.push_back(found.detach().narrow(0, 0, part.count));
          Tensors weights = weigh(found.detach(), part.rows);
          gradients.resize(weights.size());
          for (size_t i = 0; i < weights.size(); ++i) {
            at::Tensor gradient;
            if (found.requires_grad())
              gradient = torch::autograd::grad({found}, {leaf}, {weights[i]}, i + 1 < weights.size(), false, true)[0];
            if (!gradient.defined()) gradient = at::zeros_like(leaf);
            gradients[i].push_back(gradient.detach().narrow(0, 0, part.count));
          }
        });
      });
  Gradient gradient{scores.size() == 1 ? scores[0] : at::cat(scores, 0), {}};
  for (const Tensors& parts : gradients) gradient.gradients.push_back(parts.size() == 1 ? parts[0] : at::cat(parts, 0));
  return gradient;
}

bool Network::has_gradients(const Originals& inputs) const {
  Gradient found = gradient(inputs, inputs.units, [&](const at::Tensor& scores, const at::Tensor& rows) {
    return std::vector<at::Tensor>{away_from(scores, inputs.predictions.index_select(0, rows))};
  });
  return found.gradients[0].isfinite().logical_and(found.gradients[0] != 0).any().item<bool>();
}

at::Tensor Network::unit_gradient(const Originals& inputs, const at::Tensor& units) const {
  check(to_units_ != nullptr, "no units were named");
  at::AutoGradMode grad(true);
  Tensors gradients;
  model::guarded([&] { return subject_.model_name; },
                 [&] {
                   each_part(inputs, units.detach(), [&](const Part& part) {
                     at::Tensor leaf = part.units.detach().requires_grad_();
                     Tensors values = to_units_->run(subject_.feed.inputs(changed_batch(part.inputs, leaf)));
                     at::Tensor sum;
                     for (size_t i = 0; i < values.size(); ++i) {
                       at::Tensor value =
                           model::unit_values(units_[i].layer, values[i]).select(1, units_[i].unit).sum();
                       sum = sum.defined() ? sum + value : value;
                     }
                     at::Tensor gradient;
                     if (sum.requires_grad())
                       gradient = torch::autograd::grad({sum}, {leaf}, {}, false, false, true)[0];
                     if (!gradient.defined()) gradient = at::zeros_like(leaf);
                     gradients.push_back(gradient.detach().narrow(0, 0, part.count) / double(units_.size()));
                   });
                 });
  return gradients.size() == 1 ? gradients[0] : at::cat(gradients, 0);
}

}  // namespace netmend::inputs
