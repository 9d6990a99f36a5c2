#include "localise/gradient.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>

#include "base/pool.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "model/guard.h"

namespace netmend::localise {

using model::ValueId;
using observers::PredictionSettings;
using observers::Task;
using Tensors = std::vector<at::Tensor>;

at::Tensor losses(const PredictionSettings& settings, const at::Tensor& columns, const at::Tensor& labels) {
  const bool probabilities = settings.head.without_logits();
  auto surprise = [](const at::Tensor& p) { return -p.clamp_min(1e-12).log(); };
  if (settings.task == Task::kClasses) {
    at::Tensor label = labels.to(at::kLong).unsqueeze(1);
    if (probabilities) return surprise(columns.gather(1, label).squeeze(1));
    return -at::log_softmax(columns, 1).gather(1, label).squeeze(1);
  }
  at::Tensor target = labels.to(columns.scalar_type()).reshape(columns.sizes());
  if (settings.task == Task::kNumber) return (columns - target).square().mean(1);
  at::Tensor each = probabilities ? target * surprise(columns) + (1 - target) * surprise(1 - columns)
                                  : at::softplus(columns) - target * columns;
  return each.mean(1);
}

namespace {

/// Runs a network so that the gradient of the loss at every layer is known.
class Gradients {
 public:
  Gradients(const stream::Subject& subject, const PredictionSettings& settings, const std::vector<model::Layer>& layers)
      : subject_(subject), settings_(settings), layers_(layers), graph_(subject.batching.graph) {
    starts_ = executor::find_starts(graph_);
    for (ValueId id : starts_)
      if (std::find(graph_.inputs.begin(), graph_.inputs.end(), id) == graph_.inputs.end()) made_.push_back(id);
    if (!made_.empty()) embed_.emplace(graph_, subject.request(made_, executor::Mode::kPlain));
    executor::Request request = subject.request({}, executor::Mode::kPlain);
    request.given = graph_.inputs;
    request.given.insert(request.given.end(), made_.begin(), made_.end());
    for (const model::Layer& layer : layers_) request.wanted.push_back(layer.post);
    request.wanted.push_back(settings.task == Task::kNumber ? settings.head.output : settings.head.logits);
    run_.emplace(graph_, request);
  }

  /// Activation × gradient, inputs × units of all layers, of the first `count` inputs of a batch.
  at::Tensor parts(const dataset::Batch& batch, int64_t count) const {
    Tensors inputs = subject_.feed.inputs(batch);
    if (subject_.batching.kind != executor::Batching::kOne) return together(inputs, batch.labels, count);
    Tensors rows;
    for (int64_t row = 0; row < count; ++row) {
      Tensors one;
      for (const at::Tensor& input : inputs) one.push_back(input.narrow(0, row, 1));
      rows.push_back(together(one, batch.labels.narrow(0, row, 1), 1));
    }
    return at::cat(rows, 0);
  }

 private:
  at::Tensor together(const Tensors& inputs, const at::Tensor& labels, int64_t count) const {
    at::AutoGradMode grad(true);
    Tensors values = run_->run(leaves(inputs));
    at::Tensor columns = observers::as_columns(values.back());
    values.pop_back();
    at::Tensor loss =
        losses(settings_, columns.narrow(0, 0, count), labels.narrow(0, 0, count).to(columns.device())).sum();
    Tensors reached, gradients(values.size());
    for (const at::Tensor& value : values)
      if (value.requires_grad()) reached.push_back(value);
    if (loss.requires_grad() && !reached.empty()) {
      Tensors found = torch::autograd::grad({loss}, reached, {}, false, false, true);
      size_t next = 0;
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i].requires_grad()) gradients[i] = found[next++];
    }
    return join(values, gradients, count);
  }

  /// The given tensors: what quantities begin with is made to carry gradients.
  Tensors leaves(const Tensors& inputs) const {
    Tensors given = inputs;
    if (!made_.empty()) {
      at::NoGradGuard no_grad;
      for (at::Tensor& value : embed_->run(inputs)) given.push_back(value);
    }
    for (at::Tensor& value : given) value = value.to(subject_.device);  // the leaf itself, not a copy of it
    for (size_t i = 0; i < given.size(); ++i) {
      ValueId id = run_->request().given[i];
      if (std::find(starts_.begin(), starts_.end(), id) != starts_.end() && given[i].is_floating_point())
        given[i] = given[i].detach().requires_grad_();
    }
    return given;
  }

  at::Tensor join(const Tensors& values, const Tensors& gradients, int64_t count) const {
    at::NoGradGuard no_grad;
    Tensors parts;
    for (size_t i = 0; i < values.size(); ++i) {
      at::Tensor part = gradients[i].defined()
                            ? model::unit_maps(layers_[i], (values[i] * gradients[i]).to(at::kDouble)).sum(2)
                            : at::zeros({count, layers_[i].units}, values[i].options().dtype(at::kDouble));
      parts.push_back(part.narrow(0, 0, count));
    }
    return at::cat(parts, 1).nan_to_num(0, 0, 0).to(at::kCPU).contiguous();
  }

  const stream::Subject& subject_;
  const PredictionSettings& settings_;
  const std::vector<model::Layer>& layers_;
  const model::Graph& graph_;
  std::vector<ValueId> starts_, made_;  ///< where gradients begin; those of them that embeddings make
  std::optional<executor::Executor> embed_, run_;
};

struct Chosen {
  int64_t sample;
  int64_t side;
};

std::vector<Chosen> in_data_order(const std::vector<int64_t>& failing, const std::vector<int64_t>& passing) {
  std::vector<Chosen> chosen;
  for (int64_t sample : failing) chosen.push_back({sample, int64_t(observers::Side::kFailing)});
  for (int64_t sample : passing) chosen.push_back({sample, int64_t(observers::Side::kPassing)});
  std::sort(chosen.begin(), chosen.end(), [](const Chosen& a, const Chosen& b) { return a.sample < b.sample; });
  return chosen;
}

}  // namespace

Evidence gradient_evidence(const stream::Subject& subject, const PredictionSettings& settings,
                           const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                           const std::vector<int64_t>& passing, int jobs) {
  const std::vector<Chosen> chosen = in_data_order(failing, passing);
  const int64_t size = subject.batch_on_device(512), count = int64_t(chosen.size()),
                batches = (count + size - 1) / size;
  Evidence evidence{at::zeros({2, observers::kSampleGroups, observers::count_units(layers)}, at::kDouble),
                    at::zeros({2, observers::kSampleGroups}, at::kDouble)};
  Gradients gradients(subject, settings, layers);
  Tensors found(static_cast<size_t>(batches));
  auto work = [&](int64_t item, int) {
    int64_t first = item * size, own = std::min(size, count - first);
    std::vector<int64_t> samples;
    for (int64_t i = 0; i < size; ++i) samples.push_back(chosen[size_t(first + std::min(i, own - 1))].sample);
    found[size_t(item)] = model::guarded([&] { return subject.model_name; },
                                         [&] { return gradients.parts(subject.data->read(samples), own); });
  };
  auto hand_over = [&](int64_t item) {
    at::Tensor parts = std::move(found[size_t(item)]);
    for (int64_t row = 0; row < parts.size(0); ++row) {
      const Chosen& input = chosen[size_t(item * size + row)];
      int64_t group = observers::sample_group(input.sample);
      evidence.sums[input.side][group].add_(parts[row]);
      evidence.inputs[input.side][group].add_(1);
    }
  };
  in_order(
      batches, jobs > 0 ? jobs : cores(), [](int) { executor::enter_worker(); }, work, hand_over);
  return evidence;
}

}  // namespace netmend::localise
