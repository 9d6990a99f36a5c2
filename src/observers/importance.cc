#include "observers/importance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
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

explain::Explained one_by_one(const explain::Explainer& explainer, const std::vector<stream::Tap>& taps,
                              const std::vector<at::Tensor>& inputs, const at::Tensor& classes, int64_t count) {
  std::vector<explain::Explained> rows;
  for (int64_t row = 0; row < count; ++row) {
    std::vector<at::Tensor> one;
    for (const at::Tensor& input : inputs) one.push_back(input.narrow(0, row, 1));
    rows.push_back(explain_rows(explainer, taps, one, classes.narrow(0, row, 1), 1));
  }
  explain::Explained whole;
  auto joined = [&](auto part, int axis) {
    std::vector<at::Tensor> list;
    for (const explain::Explained& row : rows) list.push_back(part(row));
    return at::cat(list, axis);
  };
  for (size_t i = 0; i < taps.size(); ++i) {
    whole.relevance.push_back(
        joined([&](const explain::Explained& row) { return row.relevance[i]; }, axis_of(taps[i])));
    whole.values.push_back(joined([&](const explain::Explained& row) { return row.values[i]; }, axis_of(taps[i])));
  }
  whole.logits = joined([](const explain::Explained& row) { return row.logits; }, 0);
  whole.classes = joined([](const explain::Explained& row) { return row.classes; }, 0);
  whole.start = joined([](const explain::Explained& row) { return row.start; }, 0);
  for (const explain::Explained& row : rows) whole.absorbed += row.absorbed;
  return whole;
}

}  // namespace

explain::Explained explain_batch(const stream::Subject& subject, const explain::Explainer& explainer,
                                 const std::vector<stream::Tap>& taps, const dataset::Batch& batch,
                                 const at::Tensor& classes) {
  const int64_t count = batch.count(), size = std::max(count, subject.batch_size());
  check(count > 0, "a batch without inputs cannot be explained");
  std::vector<at::Tensor> inputs = subject.feed.inputs(batch);
  at::Tensor asked = classes.defined() ? classes : at::full({count}, explain::kLargest, at::kLong);
  return model::guarded([&] { return subject.model_name; },
                        [&] {
                          if (subject.batching.kind == executor::Batching::kOne)
                            return one_by_one(explainer, taps, inputs, asked, count);
                          check(subject.batching.kind == executor::Batching::kAny || count <= subject.batch_size(),
                                "{} inputs are too many at once", count);
                          at::Tensor out = at::full({size - count}, explain::kLeftOut, at::kLong);
                          for (at::Tensor& input : inputs) input = filled(input, count, size);
                          return explain_rows(explainer, taps, inputs, at::cat({asked, out}), count);
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
                 explained_options(settings_.explain, predictions_.settings())) {}

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
    classes.push_back(!counted ? explain::kLeftOut : how.by_class() ? int64_t(row.predicted) : explain::kLargest);
  }
  if (!any) return;
  explain::Explained found = explain_batch(observer_.subject_, observer_.explainer_, observer_.read_, view.batch,
                                           at::tensor(classes, at::kLong));
  at::Tensor answered = found.classes.cpu(), start = found.start.to(at::kCPU, at::kDouble);
  std::vector<at::Tensor> units;
  at::Tensor broken = at::zeros({int64_t(classes.size())}, at::kBool);
  for (size_t l = 0; l < sums.size(); ++l) {
    units.push_back(model::unit_maps(observer_.layers_[l], found.relevance[l]).sum(2, false, at::kDouble).cpu());
    broken = broken | ~at::isfinite(units[l]).all(1);
  }
  for (int64_t row = 0; row < int64_t(classes.size()); ++row) {
    if (classes[size_t(row)] == explain::kLeftOut) continue;
    if (broken[row].item<bool>() || answered[row].item<int64_t>() < 0) {
      ++not_finite;
      continue;
    }
    int64_t group = observer_.groups_ > 1 ? answered[row].item<int64_t>() : 0;
    inputs.data_ptr<int64_t>()[group] += 1;
    starts.data_ptr<double>()[group] += start[row].item<double>();
    for (size_t l = 0; l < sums.size(); ++l) sums[l][group].add_(units[l][row]);
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
