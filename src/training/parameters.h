// All that training changes, laid out in one flat buffer: weights, biases, norm scales and offsets, embeddings; and
// beside it the running statistics of batch norm, which change without gradients.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "model/graph.h"

namespace netmend::training {

struct Slot {
  model::ValueId id = model::kAbsent;
  int64_t offset = 0, count = 0;
  std::vector<int64_t> shape;
};

class Parameters {
 public:
  /// Only those that the wanted value depends on. Throws InputError when there are none, or when some are quantised or
  /// float64.
  Parameters(const model::Graph& graph, model::ValueId wanted, at::Device device = at::kCPU);

  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<model::ValueId>& statistics_ids() const { return statistics_ids_; }
  int64_t count() const { return values_.numel(); }

  at::Tensor& values() { return values_; }  ///< flat
  std::vector<at::Tensor>& statistics() { return statistics_; }
  const at::Tensor& values() const { return values_; }
  const std::vector<at::Tensor>& statistics() const { return statistics_; }
  /// A variable for autograd that shares the flat buffer's memory.
  at::Tensor leaf(size_t slot) const;
  /// Puts all of them back into a graph with the same values.
  void write_to(model::Graph& graph) const;

 private:
  std::vector<Slot> slots_;
  std::vector<model::ValueId> statistics_ids_;
  at::Tensor values_;
  std::vector<at::Tensor> statistics_;
};

}  // namespace netmend::training
