// The rest of a network: all that depends on values or constants that changed, and nothing else.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/executor.h"
#include "whatif/dense_chain.h"

namespace netmend::whatif {

class Tail {
 public:
  /// `changed`: values and constants that will be given anew.
  Tail(const model::Graph& graph, std::vector<model::ValueId> changed, model::ValueId wanted,
       at::Device device = at::kCPU);

  /// Unchanged values that it reads besides, in the order run() expects them.
  const std::vector<model::ValueId>& beside() const { return beside_; }
  const std::vector<model::ValueId>& changed() const { return changed_; }
  /// Any thread may call.
  at::Tensor run(std::span<const at::Tensor> changed, std::span<const at::Tensor> beside) const;
  /// Nothing but the changed values varies from input to input, so that rows of several questions may be stacked.
  bool stacks() const { return beside_.empty(); }
  /// The outputs depend on what changed; else there is nothing to run.
  bool matters() const { return trivial_ || run_; }

 private:
  std::vector<model::ValueId> changed_, beside_;
  model::ValueId wanted_;
  bool trivial_ = false;  ///< what is wanted is itself given
  std::unique_ptr<executor::Executor> run_;
  std::unique_ptr<DenseChain> dense_;  ///< a shorter way, where there is one
};

}  // namespace netmend::whatif
