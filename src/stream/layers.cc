#include "stream/layers.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <optional>

#include "executor/layers.h"
#include "model/guard.h"

namespace netmend::stream {
namespace {

using executor::Batching;
using model::Layer;
using model::Merged;

constexpr int64_t kInputs = 3;

/// The values of all layers for three inputs together and for the second of them alone.
struct Trial {
  std::vector<at::Tensor> together, alone;
};

std::vector<at::Tensor> run_rows(const Subject& subject, const executor::Executor& executor,
                                 const dataset::Batch& batch, int64_t first, int64_t count) {
  std::vector<at::Tensor> inputs = subject.feed.inputs(batch);
  for (at::Tensor& input : inputs) input = input.narrow(0, first, count);
  at::NoGradGuard no_grad;
  return model::guarded([&] { return subject.model_name; }, [&] { return executor.run(inputs); });
}

Trial try_inputs(const Subject& subject, const std::vector<Layer>& layers) {
  executor::Request request;
  for (const Layer& layer : layers) request.wanted.push_back(layer.post);
  executor::Executor executor(subject.batching.graph, request);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < kInputs; ++i) samples.push_back(i * (subject.data->size() - 1) / (kInputs - 1));
  dataset::Batch batch = subject.data->read(samples);
  Trial trial;
  trial.alone = run_rows(subject, executor, batch, 1, 1);
  if (subject.batching.kind == Batching::kAny) trial.together = run_rows(subject, executor, batch, 0, kInputs);
  return trial;
}

/// The second input's part of a value if its inputs lie so, compared with what that input gives alone.
double mismatch(const at::Tensor& together, const at::Tensor& alone, int64_t axis, Merged merged) {
  int64_t positions = together.size(axis) / kInputs;
  at::Tensor part = merged == Merged::kPositionsFirst
                        ? together.unflatten(axis, {positions, kInputs}).select(axis + 1, 1)
                        : together.unflatten(axis, {kInputs, positions}).select(axis, 1);
  return (part.reshape(alone.sizes()) - alone).abs().max().item<double>();
}

/// Sets the axis that counts inputs; false when none does.
bool settle_axis(Layer& layer, const at::Tensor& together, const at::Tensor& alone) {
  const int64_t rank = alone.dim(), unit = at::maybe_wrap_dim(layer.unit_axis, rank);
  if (together.dim() != rank || alone.numel() == 0) return false;
  double least = INFINITY;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (axis == unit || together.numel() != kInputs * alone.numel() ||
        together.size(axis) != kInputs * alone.size(axis))
      continue;
    for (Merged merged : {Merged::kNo, Merged::kInputsFirst, Merged::kPositionsFirst}) {
      if ((merged == Merged::kNo) != (alone.size(axis) == 1)) continue;
      double found = mismatch(together, alone, axis, merged);
      if (!(found < least)) continue;
      least = found;
      layer.batch_axis = int(axis), layer.merged = merged;
    }
  }
  if (least == INFINITY) return false;
  if (layer.merged != Merged::kNo && unit > layer.batch_axis) layer.unit_axis = int(unit - rank);
  return true;
}

}  // namespace

std::vector<Layer> find_layers(const Subject& subject) {
  std::vector<Layer> layers = executor::find_layers(subject.graph), usable;
  if (layers.empty() || subject.data->size() < kInputs || subject.batching.kind == Batching::kFixed) return layers;
  Trial trial = try_inputs(subject, layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (subject.batching.kind == Batching::kAny) {
      if (settle_axis(layers[i], trial.together[i], trial.alone[i])) usable.push_back(layers[i]);
      continue;
    }
    // One input at a time: whatever the axes are, all of it belongs to that input.
    const int64_t rank = trial.alone[i].dim(), unit = at::maybe_wrap_dim(layers[i].unit_axis, rank);
    layers[i].batch_axis = unit == 0 ? int(rank > 1) : 0;
    layers[i].merged = Merged::kInputsFirst;
    if (unit > layers[i].batch_axis) layers[i].unit_axis = int(unit - rank);
    usable.push_back(layers[i]);
  }
  return usable;
}

}  // namespace netmend::stream
