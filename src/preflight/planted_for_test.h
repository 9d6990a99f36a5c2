// A network whose right set-up is known: the labels are its own predictions for inputs prepared in that way.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "dataset/memory_dataset.h"
#include "executor/layers.h"
#include "observers/predictions.h"
#include "preflight/trial.h"
#include "stream/pass.h"
#include "zoo/zoo.h"

namespace netmend::preflight {

struct Planted {
  std::shared_ptr<dataset::MemoryDataset> data;
  std::unique_ptr<stream::Subject> subject;
  observers::PredictionSettings settings;

  Planted(const model::Graph& graph, dataset::Feature feature, const at::Tensor& given, const at::Tensor& labels,
          std::vector<std::string> classes, model::ValueId output = model::kAbsent)
      : data(std::make_shared<dataset::MemoryDataset>(std::move(feature), given, labels, std::move(classes))) {
    const executor::Head head = executor::find_head(graph, output == model::kAbsent ? graph.outputs.at(0) : output);
    subject = std::make_unique<stream::Subject>("m.onnx", graph, data, std::vector{head.output, head.logits});
    const dataset::Batch batch = data->read(stream::spread(data->size(), 64));
    settings =
        observers::infer_task(graph, head, data->info(), batch, stream::run_few(*subject, {head.output}, batch)[0]);
  }

  static at::Tensor outputs(const model::Graph& graph, const dataset::Feature& feature, const at::Tensor& x) {
    auto data = std::make_shared<dataset::MemoryDataset>(feature, x, at::Tensor());
    const stream::Subject subject("m.onnx", graph, data, {graph.outputs.back()});
    const dataset::Batch batch = data->read(stream::spread(x.size(0), x.size(0)));
    return stream::run_few(subject, {graph.outputs.back()}, batch)[0];
  }
  /// The class of each input by the last output of the network.
  static at::Tensor predicted(const model::Graph& graph, const dataset::Feature& feature, const at::Tensor& x) {
    return outputs(graph, feature, x).argmax(1);
  }

  Trial trial() const {
    Trial trial(*subject, settings, 1);
    trial.asis = trial.rows(trial.first);
    return trial;
  }
};

/// A dense network that predicts each class about as often as any other on inputs that are prepared as `right` is: its
/// last biases are set so. On inputs of another scale they are too small or too large.
inline model::Graph centred_network(const std::string& name, const dataset::Feature& feature, const at::Tensor& right) {
  model::Graph graph = zoo::make(name, {.seed = 3});
  graph.replace(graph.nodes.back().inputs.at(2), -Planted::outputs(graph, feature, right).mean(0));
  return graph;
}

}  // namespace netmend::preflight
