#include "observers/importance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "executor/runtime.h"
#include "model/guard.h"
#include "observers/input_relevance.h"

namespace netmend::observers {
namespace {

/// Above this the sums by class would take more memory than they are worth, one set a chunk in flight.
constexpr int64_t kMostSums = 4'000'000;

std::vector<stream::Tap> read_taps(const std::vector<model::Layer>& layers, bool before_activation) {
  std::vector<stream::Tap> taps;
  for (const model::Layer& layer : layers)
    taps.push_back({before_activation ? layer.pre : layer.post, layer.batch_axis, layer.merged});
  return taps;
}

std::vector<model::ValueId> values_of(const std::vector<stream::Tap>& taps) {
  std::vector<model::ValueId> values;
  for (const stream::Tap& tap : taps) values.push_back(tap.value);
  return values;
}

int64_t groups_for(const PredictionSettings& predictions, const std::vector<model::Layer>& layers) {
  if (!predictions.by_class()) return 1;
  int64_t units = 0, classes = int64_t(predictions.classes.size());
  for (const model::Layer& layer : layers) units += layer.units;
  return classes > 0 && units * classes <= kMostSums ? classes : 1;
}

int axis_of(const stream::Tap& tap) { return tap.batch_axis + (tap.merged == model::Merged::kPositionsFirst); }

at::Tensor apart(const stream::Tap& tap, const at::Tensor& value, int64_t inputs) {
  if (tap.merged == model::Merged::kNo) return value;
  int64_t positions = value.size(tap.batch_axis) / inputs;
  return tap.merged == model::Merged::kInputsFirst ? value.unflatten(tap.batch_axis, {inputs, positions})
                                                   : value.unflatten(tap.batch_axis, {positions, inputs});
}

at::Tensor filled(const at::Tensor& tensor, int64_t count, int64_t size) {
  if (!tensor.defined() || count == size) return tensor;
  std::vector<int64_t> rows(size_t(size), count - 1);
  std::iota(rows.begin(), rows.begin() + count, 0);
  return tensor.index_select(0, at::tensor(rows, at::kLong));
}

explain::Explained explain_rows(const explain::Explainer& explainer, const std::vector<stream::Tap>& taps,
                                const std::vector<at::Tensor>& inputs, const at::Tensor& classes, int64_t count) {
  explain::Explained found = explainer.run(inputs, classes);
  for (size_t i = 0; i < taps.size(); ++i)
    for (auto* list : {&found.relevance, &found.values}) {
      at::Tensor& tensor = (*list)[i];
      tensor = apart(taps[i], tensor, inputs[0].size(0)).narrow(axis_of(taps[i]), 0, count);
    }
  for (at::Tensor* tensor : {&found.logits, &found.classes, &found.start}) *tensor = tensor->narrow(0, 0, count);
  return found;
}

explain::Explained joined(const std::vector<explain::Explained>& parts, const std::vector<stream::Tap>& taps) {
  explain::Explained whole;
  auto cat = [&](auto part, int axis) {
    std::vector<at::Tensor> list;
    for (const explain::Explained& one : parts) list.push_back(part(one));
    return at::cat(list, axis);
  };
  for (size_t i = 0; i < taps.size(); ++i) {
    whole.relevance.push_back(cat([&](const explain::Explained& one) { return one.relevance[i]; }, axis_of(taps[i])));
    whole.values.push_back(cat([&](const explain::Explained& one) { return one.values[i]; }, axis_of(taps[i])));
  }
  whole.logits = cat([](const explain::Explained& one) { return one.logits; }, 0);
  whole.classes = cat([](const explain::Explained& one) { return one.classes; }, 0);
  whole.start = cat([](const explain::Explained& one) { return one.start; }, 0);
  for (const explain::Explained& one : parts) whole.absorbed += one.absorbed;
  return whole;
}

explain::Options on_device(explain::Options options, at::Device device) {
  options.device = device;
  return options;
}

}  // namespace

int64_t explained_together(const stream::Subject& subject, const explain::Explainer& explainer) {
  constexpr int64_t most = int64_t(256) << 20;
  if (subject.batching.kind == executor::Batching::kOne) return 1;
  if (subject.batching.kind == executor::Batching::kFixed) return subject.batch_size();
  const int64_t first = 0;
  std::vector<at::Tensor> inputs = subject.feed.inputs(subject.data->read(std::span(&first, 1)));
  const int64_t room = subject.device.is_cpu() ? most : executor::device_memory() / 64;
  return std::clamp<int64_t>(room / std::max<int64_t>(1, explainer.bytes(inputs)), 1, subject.batch_on_device());
}

explain::Explained explain_batch(const stream::Subject& subject, const explain::Explainer& explainer,
                                 const std::vector<stream::Tap>& taps, const dataset::Batch& batch, int64_t together,
                                 const at::Tensor& classes) {
  const int64_t count = batch.count();
  check(count > 0, "a batch without inputs cannot be explained");
  at::Tensor asked = classes.defined() ? classes : at::full({count}, explain::kLargest, at::kLong);
  return model::guarded(
      [&] { return subject.model_name; },
      [&] {
        std::vector<at::Tensor> inputs = subject.feed.inputs(batch);
        std::vector<explain::Explained> parts;
        for (int64_t first = 0; first < count; first += together) {
          const int64_t own = std::min(together, count - first);
          std::vector<at::Tensor> part;
          for (const at::Tensor& input : inputs) part.push_back(filled(input.narrow(0, first, own), own, together));
          at::Tensor out = at::full({together - own}, explain::kLeftOut, at::kLong);
          parts.push_back(explain_rows(explainer, taps, part, at::cat({asked.narrow(0, first, own), out}), own));
        }
        return parts.size() == 1 ? parts[0] : joined(parts, taps);
      });
}

Importance::Importance(const stream::Subject& subject, PredictionSettings predictions, std::vector<model::Layer> layers,
                       ImportanceSettings settings)
    : subject_(subject),
      predictions_(std::move(predictions), true),
      layers_(std::move(layers)),
      settings_(std::move(settings)),
      groups_(groups_for(predictions_.settings(), layers_)),
      read_(read_taps(layers_, settings_.before_activation)),
      explainer_(subject.batching.graph, explained_head(predictions_.settings()), values_of(read_),
                 on_device(explained_options(settings_.explain, predictions_.settings()), subject.device)),
      together_(model::guarded([&] { return subject.model_name; },
                               [&] { return explained_together(subject, explainer_); })) {}

std::unique_ptr<stream::State> Importance::fresh() const { return std::make_unique<ImportanceState>(*this); }

ImportanceState::ImportanceState(const Importance& observer)
    : inputs(at::zeros({observer.groups_}, at::kLong)),
      starts(at::zeros({observer.groups_}, at::kDouble)),
      observer_(observer),
      judge_(observer.predictions_.settings(), true) {
  for (const model::Layer& layer : observer.layers_)
    sums.push_back(at::zeros({observer.groups_, layer.units}, at::kDouble));
}

void ImportanceState::observe(const stream::View& view) {
  judge_.rows.clear();
  judge_.observe(view);
  const PredictionSettings& how = observer_.predictions_.settings();
  const auto& counts = observer_.settings_.counts;
  std::vector<int64_t> classes;
  bool any = false;
  for (const SampleRow& row : judge_.rows) {
    const bool counted = counts ? counts(row) : row.right != SampleRow::kWrong;
    any = any || counted;
    const bool named = how.by_class() && std::isfinite(row.predicted);  // NaN is no class; it is found out and counted
    classes.push_back(!counted ? explain::kLeftOut : named ? int64_t(row.predicted) : explain::kLargest);
  }
  if (!any) return;
  explain::Explained found = explain_batch(observer_.subject_, observer_.explainer_, observer_.read_, view.batch,
                                           observer_.together_, at::tensor(classes, at::kLong));
  at::Tensor answered = found.classes.cpu().contiguous(), start = found.start.to(at::kCPU, at::kDouble).contiguous();
  const int64_t rows = int64_t(classes.size());
  std::vector<at::Tensor> units;
  at::Tensor sound = answered >= 0;
  for (size_t l = 0; l < sums.size(); ++l) {
    at::Tensor maps = model::unit_maps(observer_.layers_[l], found.relevance[l]);
    units.push_back(maps.sum(2, false, at::kDouble).cpu().contiguous());
    sound = sound & at::isfinite(units[l]).all(1);
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (classes[size_t(row)] == explain::kLeftOut) continue;
    if (!sound.data_ptr<bool>()[row]) {
      ++not_finite;
      continue;
    }
    const int64_t group = observer_.groups_ > 1 ? answered.data_ptr<int64_t>()[row] : 0;
    inputs.data_ptr<int64_t>()[group] += 1;
    starts.data_ptr<double>()[group] += start.data_ptr<double>()[row];
    for (size_t l = 0; l < sums.size(); ++l) {
      const int64_t count = sums[l].size(1);
      const double* from = units[l].data_ptr<double>() + row * count;
      double* to = sums[l].data_ptr<double>() + group * count;
      for (int64_t u = 0; u < count; ++u) to[u] += from[u];
    }
  }
  if (std::isfinite(found.absorbed)) absorbed += found.absorbed;
}

void ImportanceState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const ImportanceState&>(later);
  for (size_t l = 0; l < sums.size(); ++l) sums[l].add_(other.sums[l]);
  inputs.add_(other.inputs);
  starts.add_(other.starts);
  absorbed += other.absorbed;
  not_finite += other.not_finite;
}

void ImportanceState::save(std::ostream& out) const {
  for (const at::Tensor& sum : sums) stream::put(out, sum);
  stream::put(out, inputs);
  stream::put(out, starts);
  stream::put(out, absorbed);
  stream::put(out, not_finite);
}

void ImportanceState::load(std::istream& in) {
  std::vector<at::Tensor*> all;
  for (at::Tensor& sum : sums) all.push_back(&sum);
  all.push_back(&inputs);
  all.push_back(&starts);
  for (at::Tensor* tensor : all) {
    at::Tensor read = stream::get_tensor(in);
    if (read.sizes() != tensor->sizes() || read.scalar_type() != tensor->scalar_type())
      fail("the state file is damaged");
    *tensor = read.clone();
  }
  absorbed = stream::get_double(in);
  not_finite = stream::get_int(in);
}

at::Tensor importance_of(const ImportanceState& state, size_t layer, int64_t group) {
  const at::Tensor& sums = state.sums.at(layer);
  return group < 0 ? sums.sum(0) : sums[group];
}

std::vector<int64_t> most_important(const ImportanceState& state, size_t layer, int64_t count, int64_t group) {
  at::Tensor sums = importance_of(state, layer, group).contiguous();
  const double* value = sums.data_ptr<double>();
  std::vector<int64_t> order(static_cast<size_t>(sums.numel()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return value[a] > value[b]; });
  order.resize(size_t(std::clamp<int64_t>(count, 0, sums.numel())));
  return order;
}

}  // namespace netmend::observers
