// One training step: the batch is cut into parts, whose number depends on the batch's size alone, each part runs
// forward and backward on some worker, and gradients are added in the order of parts. So no number of workers changes a
// bit.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/graph.h"
#include "training/loss.h"
#include "training/options.h"
#include "training/parameters.h"
#include "training/prepare.h"
#include "training/samples.h"

namespace netmend::training {

/// The moments that an optimiser keeps.
struct OptimiserState {
  at::Tensor first, second;  ///< flat, as long as the parameters; undefined where the rule has fewer
  int64_t steps = 0;
};

struct StepResult {
  double loss = 0;  ///< sum over the inputs
  int64_t right = 0;
};

/// Parts that a batch of so many inputs is cut into: none so small that starting it costs more than its work. `lanes`:
/// the network is one that LaneNetwork knows.
int parts_of(int64_t inputs, const Work& work, bool lanes = false);

class Stepper {
 public:
  /// `graph` takes any batch size; `wanted` is what the loss is taken from. `parameters` outlives it and is changed.
  Stepper(const model::Graph& graph, model::ValueId wanted, Parameters& parameters, LossForm loss,
          const Options& options, const Work& work);
  ~Stepper();

  /// Parts that a batch of so many of these inputs is cut into; the same for any number of workers.
  int parts(const Samples& data, int64_t inputs);
  /// Throws InputError when the network or a label does not fit.
  StepResult step(const Samples& data, std::span<const int64_t> samples, double rate);
  /// The same without waiting for a GPU: what came of it is told by take(), in order, with all other steps since.
  void queue(const Samples& data, std::span<const int64_t> samples, double rate);
  std::vector<StepResult> take();
  /// Forgets what was queued; the steps themselves were done.
  void drop();
  /// Steps that may be queued before it pays to take() their results: 1 on the CPU, which does them at once.
  size_t most_queued() const;
  OptimiserState& state();
  /// Gradients of the last step, flat, as they were given to the optimiser.
  const at::Tensor& gradient() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::training
