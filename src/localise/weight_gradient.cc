#include "localise/weight_gradient.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "base/pool.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "localise/gradient.h"
#include "model/guard.h"

namespace netmend::localise {

using model::ValueId;
using Tensors = std::vector<at::Tensor>;

namespace {

class Backward {
 public:
  Backward(const stream::Subject& subject, const observers::PredictionSettings& settings,
           const std::vector<ValueId>& constants)
      : subject_(subject), settings_(settings), constants_(constants) {
    executor::Request request = subject.request({}, executor::Mode::kPlain);
    request.given = subject.batching.graph.inputs;
    request.given.insert(request.given.end(), constants.begin(), constants.end());
    request.wanted = {settings.task == observers::Task::kNumber ? settings.head.output : settings.head.logits};
    run_.emplace(subject.batching.graph, request);
  }

  /// Gradients of the summed loss of the first `count` inputs.
  Tensors run(const dataset::Batch& batch, int64_t count) const {
    Tensors inputs = subject_.feed.inputs(batch), sums(constants_.size());
    const int64_t rows = subject_.batching.kind == executor::Batching::kOne ? 1 : batch.count();
    for (int64_t first = 0; first < count; first += rows) {
      at::AutoGradMode grad(true);
      Tensors given, leaves;
      for (const at::Tensor& input : inputs) given.push_back(input.narrow(0, first, rows));
      for (ValueId id : constants_) {
        leaves.push_back(subject_.batching.graph.constant(id).detach().requires_grad_());
        given.push_back(leaves.back());
      }
      at::Tensor columns = observers::as_columns(run_->run(given)[0]);
      const int64_t own = std::min(rows, count - first);
      at::Tensor loss =
          losses(settings_, columns.narrow(0, 0, own), batch.labels.narrow(0, first, own).to(columns.device()));
      loss = at::where(at::isfinite(loss), loss, at::zeros_like(loss)).sum();
      Tensors found = torch::autograd::grad({loss}, leaves, {}, false, false, true);
      for (size_t i = 0; i < found.size(); ++i) {
        if (!found[i].defined()) continue;
        at::Tensor part = at::nan_to_num(found[i], 0, 0, 0);
        sums[i] = sums[i].defined() ? sums[i] + part : part;
      }
    }
    return sums;
  }

 private:
  const stream::Subject& subject_;
  const observers::PredictionSettings& settings_;
  const std::vector<ValueId>& constants_;
  std::optional<executor::Executor> run_;
};

}  // namespace

std::map<ValueId, at::Tensor> weight_gradients(const stream::Subject& subject,
                                               const observers::PredictionSettings& settings,
                                               const std::vector<ValueId>& constants,
                                               const std::vector<int64_t>& samples, int jobs) {
  std::map<ValueId, at::Tensor> sums;
  for (ValueId id : constants) sums[id] = at::zeros(subject.batching.graph.constant(id).sizes(), at::kDouble);
  const int64_t size = subject.batch_on_device(512), count = int64_t(samples.size()),
                batches = (count + size - 1) / size;
  Backward backward(subject, settings, constants);
  std::vector<Tensors> found(static_cast<size_t>(batches));
  auto work = [&](int64_t item, int) {
    int64_t first = item * size, own = std::min(size, count - first);
    std::vector<int64_t> some;
    for (int64_t i = 0; i < size; ++i) some.push_back(samples[size_t(first + std::min(i, own - 1))]);
    found[size_t(item)] =
        model::guarded([&] { return subject.model_name; }, [&] { return backward.run(subject.data->read(some), own); });
  };
  auto hand_over = [&](int64_t item) {
    for (size_t i = 0; i < constants.size(); ++i)
      if (found[size_t(item)][i].defined()) sums[constants[i]].add_(found[size_t(item)][i].to(at::kDouble));
    found[size_t(item)] = {};
  };
  in_order(
      batches, jobs > 0 ? jobs : cores(), [](int) { executor::enter_worker(); }, work, hand_over);
  return sums;
}

}  // namespace netmend::localise
