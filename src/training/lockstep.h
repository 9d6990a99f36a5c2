// Many small networks of one form trained and run together, as one computation: they see the same inputs in the same
// order and differ in their weights alone. One network of a thousand weights keeps no core and no GPU busy; what takes
// time there is starting operators. What each of them becomes depends on its own weights alone, not on the others that
// are with it, and agrees with what Trainer makes of it to rounding.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "model/graph.h"
#include "training/lockstep_plan.h"
#include "training/loss.h"
#include "training/options.h"
#include "training/samples.h"

namespace netmend::training {

class Lockstep {
 public:
  /// `graph` and `wanted` are those that `plan` was made from. On the CPU one thread runs it.
  static std::unique_ptr<Lockstep> make(const LockstepPlan& plan, const model::Graph& graph, model::ValueId wanted,
                                        at::Device device);
  virtual ~Lockstep() = default;
  Lockstep(const Lockstep&) = delete;

  /// How many networks go at once on this device.
  static int64_t most(at::Device device);
  /// Takes the weights of these networks, at most most() of them, in place of those that it had.
  virtual void take(const std::vector<const model::Graph*>& networks) = 0;
  /// Puts the weights of the network with this number into a graph of the same form.
  virtual void write_to(int64_t network, model::Graph& graph) const = 0;

  /// The first epoch of a training with these options, as Trainer runs it. For each network the mean loss as it went
  /// along; NaN or Inf where it diverged: its weights are then of no use, the others' are as they would be without it.
  /// Throws Interrupted, and InputError for what the options ask that lockstep does not do.
  virtual std::vector<double> train_epoch(const Samples& data, const LossForm& loss, const Options& options) = 0;
  /// What the networks give for the inputs from `first` on, network × input × column, on the CPU.
  virtual at::Tensor outputs(const Samples& data, int64_t first, int64_t count) = 0;

 protected:
  Lockstep() = default;
};

}  // namespace netmend::training
