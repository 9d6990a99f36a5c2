// A batch that is computed in parts on several threads. Operators that need the whole batch (batch norm in training)
// ask the seat of their thread, and all-reduce with the other parts.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace netmend::ops {

class SplitBatch {
 public:
  virtual ~SplitBatch() = default;
  /// Called by every part in the same order of calls; replaces each number by its sum over all parts, added in the
  /// order of parts.
  virtual void sum(int part, std::span<double> numbers) = 0;
};

/// Where this thread sits; no batch: it has the whole one to itself.
struct Seat {
  SplitBatch* batch = nullptr;
  int part = 0;
};
Seat& seat();

struct BatchNormForm {
  double epsilon = 1e-5, momentum = 0.9;
};
/// Batch norm with the statistics of the whole split batch, which is what `seat()` says, with gradients. Part 0 updates
/// the running statistics in place. x: float, inputs × channels × anything.
at::Tensor split_batch_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias,
                            const at::Tensor& mean, const at::Tensor& variance, BatchNormForm form);

}  // namespace netmend::ops
