// Small networks on made-up pictures, ready to be attacked, for tests.
#pragma once

#include <ATen/ATen.h>

#include "base/random.h"
#include "inputs/campaign.h"
#include "inputs/made_dataset.h"
#include "zoo/builder.h"

namespace netmend::inputs {

inline at::Tensor random_bytes(std::vector<int64_t> shape, uint64_t seed) {
  Random random(seed, 3);
  at::Tensor t = at::empty(shape, at::kFloat);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<float>()[i] = float(random.below(256));
  return t;
}

/// Pictures of bytes as a data set; `raw` is inputs × channels × rows × columns. With `last`, channels come last.
inline std::shared_ptr<const dataset::Dataset> picture_data(const at::Tensor& raw, const at::Tensor& labels,
                                                            int64_t classes, dataset::Preprocess preprocess,
                                                            bool last = false) {
  dataset::Info info;
  info.spec = "made up";
  info.preprocess = preprocess;
  at::Tensor own = last ? raw.permute({0, 2, 3, 1}).contiguous() : raw;
  dataset::Feature feature{"x", own.sizes().slice(1).vec()};
  feature.image = true, feature.channels_last = last;
  info.features = {feature};
  info.labels = dataset::LabelKind::kClass;
  for (int64_t c = 0; c < classes; ++c) info.classes.push_back(std::to_string(c));
  const int64_t channels = raw.size(1);
  at::Tensor factor = at::empty({channels}, at::kFloat), offset = at::empty({channels}, at::kFloat);
  for (int64_t c = 0; c < channels; ++c) {
    auto pick = [&](const std::vector<double>& v, double none) {
      return v.empty() ? none : v[v.size() == 1 ? 0 : size_t(c)];
    };
    factor[c] = preprocess.scale.value_or(1) / pick(preprocess.std, 1);
    offset[c] = -pick(preprocess.mean, 0) / pick(preprocess.std, 1);
  }
  std::vector<int64_t> shape = last ? std::vector<int64_t>{1, 1, 1, channels} : std::vector<int64_t>{1, channels, 1, 1};
  dataset::Batch batch;
  batch.inputs = {own * factor.reshape(shape) + offset.reshape(shape)};
  batch.masks.resize(1);
  batch.labels = labels;
  return std::make_shared<MadeDataset>(info, batch);
}

/// conv, relu, pool, dense: channels × 8 × 8 in, 4 classes out. With `last`, the input has its channels last.
inline model::Graph small_network(uint64_t seed, int64_t channels, bool last = false) {
  zoo::Builder b("small", zoo::Scheme::kHe, seed);
  using Ints = std::vector<int64_t>;
  model::ValueId x = last ? b.input("x", {8, 8, channels}) : b.input("x", {channels, 8, 8});
  if (last) x = b.plain("Transpose", {x}, {{"perm", Ints{0, 3, 1, 2}}});
  x = b.max_pool(b.relu(b.conv("conv1", x, channels, 6, {3, 1, 1})));
  x = b.relu(b.dense("fc1", b.flatten(x), 96, 12));
  return b.finish(b.dense("fc2", x, 12, 4), "y", 4);
}

/// Everything a method needs.
struct TestCase {
  std::shared_ptr<const dataset::Dataset> data;
  executor::Head head;
  stream::Subject subject;
  observers::PredictionSettings settings;
  Subject changed;
  std::optional<stream::RawRange> range;
  std::unique_ptr<Network> network;
  Chosen chosen;  ///< all inputs, with the network's predictions

  TestCase(model::Graph graph, std::shared_ptr<const dataset::Dataset> source, std::vector<UnitPlace> units = {})
      : data(source),
        head(executor::find_head(graph, graph.outputs[0])),
        subject("small", std::move(graph), source, {head.output, head.logits}),
        changed(find_subject(source->info())) {
    dataset::Batch few = data->read(stream::spread(data->size(), 64));
    settings =
        observers::infer_task(subject.graph, head, data->info(), few, stream::run_few(subject, {head.output}, few)[0]);
    if (changed.kind != Kind::kTokens) range.emplace(*data, changed.feature);
    network = std::make_unique<Network>(subject, settings, changed, range ? &*range : nullptr, units);
    Originals all = originals();
    at::Tensor predictions = network->predictions(all, all.units);
    for (int64_t i = 0; i < data->size(); ++i)
      chosen.samples.push_back(i), chosen.predictions.push_back(predictions[i].item<int64_t>());
  }

  Originals originals() const {
    Originals all;
    std::vector<int64_t> samples;
    for (int64_t i = 0; i < data->size(); ++i) samples.push_back(i);
    all.batch = data->read(samples);
    all.units = range ? range->units(all.batch.inputs[changed.feature]) : all.batch.inputs[changed.feature];
    if (!chosen.predictions.empty()) all.predictions = at::tensor(chosen.predictions, at::kLong);
    return all;
  }
};

/// Random pictures for a random network, normalised by channel.
inline std::unique_ptr<TestCase> random_case(uint64_t seed, int64_t channels = 3, bool last = false,
                                             int64_t count = 24) {
  dataset::Preprocess preprocess;
  preprocess.scale = 1.0 / 255;
  preprocess.mean = {0.4}, preprocess.std = {0.3};
  if (channels == 3) preprocess.mean = {0.49, 0.48, 0.45}, preprocess.std = {0.2, 0.3, 0.25};
  at::Tensor raw = random_bytes({count, channels, 8, 8}, seed), labels = at::arange(count, at::kLong).remainder(4);
  return std::make_unique<TestCase>(small_network(seed, channels, last),
                                    picture_data(raw, labels, 4, preprocess, last));
}

}  // namespace netmend::inputs
