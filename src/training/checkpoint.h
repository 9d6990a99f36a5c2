// A training's state on disk: a line that says what it is, a line of JSON, then the numbers. Files may come from
// strangers: sizes must be exactly those of the task, and what is not is refused.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "training/trainer.h"

namespace netmend::training {

struct Checkpoint {
  std::string task;   ///< fingerprint of model, data and options
  int64_t steps = 0;  ///< of the optimiser
  std::vector<Epoch> history;
  std::vector<at::Tensor> state;  ///< float tensors
};

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Fills `into.state`, whose tensors have the sizes expected. Throws InputError.
void read_checkpoint(const std::string& path, Checkpoint& into);

}  // namespace netmend::training
