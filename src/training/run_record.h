// The record of a training by netmend's own trainer, in the form in which other programs are watched
// (docs/training.md). Nothing here draws a random number or changes a weight.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/layer.h"
#include "records/writer.h"
#include "training/epoch.h"
#include "training/loss.h"
#include "training/options.h"
#include "training/parameters.h"
#include "training/samples.h"

namespace netmend::training {

/// What is recorded of; all of it outlives the record.
struct RecordSubject {
  const model::Graph& graph;  ///< any batch size, nodes as in the file
  model::ValueId wanted = model::kAbsent;
  const Parameters& parameters;
  const LossForm& loss;
  const Options& options;
  const Samples& train;
  const Samples* validation = nullptr;
};

class RunRecord {
 public:
  /// Describes network, data and settings. Throws InputError when the file cannot be written.
  RunRecord(const std::string& path, const std::vector<std::string>& program, RecordSubject subject,
            int64_t steps_before);
  ~RunRecord();

  /// Whether the step is to be looked at that comes after `untold` ones of which after_step has not heard yet.
  bool due(size_t untold) const;
  /// Before a step that is looked at.
  void before_step();
  /// After each; `gradient` is the one that the optimiser got, `batch` the inputs of the step.
  void after_step(double loss, double rate, const at::Tensor& gradient, std::span<const int64_t> batch);
  void epoch(const Epoch& epoch);
  /// The loss of a step is NaN or Inf: where it came from.
  void not_finite(double loss, double rate, std::span<const int64_t> batch);
  /// No further steps; `failure` is empty where all epochs are done.
  void end(const std::string& failure);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::training
