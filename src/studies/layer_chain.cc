#include "studies/layer_chain.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "observers/surprise/class_traces.h"
#include "stream/layers.h"

namespace netmend::studies {

using observers::SampleRow;
using observers::UnitBatch;
using observers::UnitSpace;

namespace {

constexpr int64_t kTogether = 500;

/// Means of maps, and extremes of all elements.
at::Tensor means(const at::Tensor& value) { return value.dim() > 2 ? value.flatten(2).mean(2) : value; }

}  // namespace

LayerChain::LayerChain(const stream::Subject& subject, const executor::Head& head)
    : subject_(subject), logits_(head.logits) {
  struct Step {
    int node;
    ChainLayer layer;
  };
  std::vector<Step> steps;
  for (const model::Layer& layer : stream::find_layers(subject)) {
    if (layer.batch_axis != 0 || (layer.op != "Conv" && layer.op != "Gemm" && layer.op != "MatMul"))
      fail("{}: layer {} is a {}, and the study looks at convolutions and dense layers", subject.model_name, layer.name,
           layer.op);
    steps.push_back({layer.node, {layer.name, layer.post, layer.units, true, layer.op != "Conv", false}});
  }
  int64_t pools = 0;
  for (size_t n = 0; n < subject.graph.nodes.size(); ++n)
    if (subject.graph.nodes[n].op == "MaxPool")
      steps.push_back({int(n), {fmt::format("pool{}", ++pools), subject.graph.nodes[n].outputs[0]}});
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.node < b.node; });
  for (Step& step : steps) {
    if (step.layer.units == 0 && !layers_.empty()) step.layer.units = layers_.back().units;
    if (step.layer.dense && (layers_.empty() || !layers_.back().dense)) {
      ChainLayer flat{"flatten"};
      flat.flatten = true, flat.value = layers_.empty() ? subject.graph.inputs[0] : layers_.back().value;
      layers_.push_back(flat);
    }
    layers_.push_back(step.layer);
  }
  if (layers_.empty() || layers_.back().value != logits_)
    fail("{}: the last layer with weights does not give the logits", subject.model_name);
  layers_.push_back({"softmax", logits_, layers_.back().units});
  std::vector<model::Layer> seen;
  for (size_t i = 0; i < layers_.size(); ++i) {
    places_.push_back(seen.size());
    if (layers_[i].weights && i + 2 < layers_.size()) hidden_.push_back(i);
    if (layers_[i].flatten) continue;
    model::Layer layer;
    layer.name = layers_[i].name, layer.units = layers_[i].units;
    seen.push_back(layer), seen_.push_back(i);
  }
  if (hidden_.empty()) fail("{} has no hidden layer with weights", subject.model_name);
  space_ = std::make_shared<const UnitSpace>(std::move(seen));
  std::vector<model::ValueId> wanted;
  for (size_t i : seen_) wanted.push_back(layers_[i].value);
  all_.emplace(subject.batching.graph, subject.request(wanted));
}

size_t LayerChain::find(const std::string& name) const {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (layers_[i].name == name) return i;
  fail("{} has no layer {}", subject_.model_name, name);
}

std::vector<at::Tensor> LayerChain::run(const executor::Executor& executor, const at::Tensor& inputs) const {
  dataset::Batch batch;
  batch.inputs = {inputs}, batch.masks.resize(1);
  for (int64_t i = 0; i < inputs.size(0); ++i) batch.samples.push_back(i);
  std::vector<at::Tensor> values = executor.run(subject_.feed.inputs(batch));
  for (at::Tensor& value : values) value = value.to(at::kCPU, at::kFloat);
  return values;
}

UnitBatch LayerChain::read(const at::Tensor& inputs, const at::Tensor& labels, int jobs) const {
  const int64_t count = inputs.size(0), units = space_->units(), layers = int64_t(seen_.size());
  UnitBatch batch;
  batch.units = units, batch.layers = layers;
  batch.rows.resize(size_t(count)), batch.values.resize(size_t(count * units));
  batch.low.resize(size_t(count * layers)), batch.high.resize(size_t(count * layers));
  at::Tensor values = at::from_blob(batch.values.data(), {count, units}, at::kFloat);
  at::Tensor low = at::from_blob(batch.low.data(), {count, layers}, at::kFloat);
  at::Tensor high = at::from_blob(batch.high.data(), {count, layers}, at::kFloat);
  observers::share_out((count + kTogether - 1) / kTogether, jobs, [&](int64_t block) {
    const int64_t first = block * kTogether, some = std::min(kTogether, count - first);
    std::vector<at::Tensor> found = run(*all_, inputs.narrow(0, first, some));
    found.back() = found.back().softmax(1);
    for (int64_t l = 0; l < layers; ++l) {
      const at::Tensor& value = found[size_t(l)];
      values.narrow(0, first, some).narrow(1, space_->first(size_t(l)), space_->units(size_t(l))).copy_(means(value));
      low.narrow(0, first, some).select(1, l).copy_(value.flatten(1).amin(1));
      high.narrow(0, first, some).select(1, l).copy_(value.flatten(1).amax(1));
    }
    auto [confidence, predicted] = found.back().max(1);
    for (int64_t i = 0; i < some; ++i) {
      SampleRow& row = batch.rows[size_t(first + i)];
      row.sample = first + i, row.label = double(labels[first + i].item<int64_t>());
      row.predicted = double(predicted[i].item<int64_t>()), row.confidence = confidence[i].item<float>();
      row.right = row.label == row.predicted ? SampleRow::kRight : SampleRow::kWrong;
    }
  });
  return batch;
}

at::Tensor LayerChain::read_layer(size_t layer, const at::Tensor& inputs, int jobs) const {
  const ChainLayer& about = layers_[layer];
  const int64_t count = inputs.size(0);
  executor::Executor executor(subject_.batching.graph, subject_.request({about.value}));
  std::vector<at::Tensor> parts(size_t((count + kTogether - 1) / kTogether));
  observers::share_out(int64_t(parts.size()), jobs, [&](int64_t block) {
    const int64_t first = block * kTogether, some = std::min(kTogether, count - first);
    at::Tensor value = run(executor, inputs.narrow(0, first, some))[0];
    parts[size_t(block)] = about.flatten && value.dim() == 4 ? value.permute({0, 2, 3, 1}).flatten(1).contiguous()
                                                             : means(value).contiguous();
  });
  return at::cat(parts, 0);
}

at::Tensor values_of(const UnitBatch& batch, const UnitSpace& space, size_t layer) {
  return at::from_blob(const_cast<float*>(batch.values.data()), {batch.count(), batch.units}, at::kFloat)
      .narrow(1, space.first(layer), space.units(layer))
      .contiguous();
}

UnitBatch rows_of(const UnitBatch& batch, const std::vector<int64_t>& rows) {
  UnitBatch some;
  some.units = batch.units, some.layers = batch.layers;
  for (int64_t row : rows) {
    some.rows.push_back(batch.rows[size_t(row)]);
    auto take = [row](std::vector<float>& to, const std::vector<float>& from, int64_t width) {
      to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
    };
    take(some.values, batch.values, batch.units);
    take(some.low, batch.low, batch.layers), take(some.high, batch.high, batch.layers);
  }
  return some;
}

UnitBatch only_layer(const UnitBatch& batch, const UnitSpace& space, size_t layer) {
  UnitBatch one;
  one.units = space.units(layer), one.layers = 1, one.rows = batch.rows;
  for (int64_t row = 0; row < batch.count(); ++row) {
    const float* from = batch.input(row) + space.first(layer);
    one.values.insert(one.values.end(), from, from + one.units);
    one.low.push_back(batch.low[size_t(row * batch.layers) + layer]);
    one.high.push_back(batch.high[size_t(row * batch.layers) + layer]);
  }
  return one;
}

}  // namespace netmend::studies
