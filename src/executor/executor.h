// Runs a graph, or any part of it. What is given and what is wanted decide which nodes run: taps are wanted values, a
// cut is a given one, and weights become variables by being given. One executor serves any number of threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/graph.h"
#include "ops/op.h"

namespace netmend::executor {

enum class Mode {
  kFast,   ///< no gradients: operators are folded, fused and may overwrite what nobody needs any more
  kPlain,  ///< node by node as in the file; gradients flow to whatever given tensor requires them
};

struct Request {
  std::vector<model::ValueId> given;   ///< empty: the graph's inputs
  std::vector<model::ValueId> wanted;  ///< empty: the graph's outputs
  Mode mode = Mode::kFast;
  /// What is float32 in the file is carried so: kDouble to check rounding, kHalf and kBFloat16 for speed on a GPU, in
  /// Mode::kFast. Wanted values of half precision come back as float32.
  at::ScalarType precision = at::kFloat;
  at::Device device = at::kCPU;
};

struct RunOptions {
  bool training = false;  ///< batch norm and dropout as in training; only in Mode::kPlain
  uint64_t seed = 0;      ///< of dropout masks
  /// Called after each node with its index, inputs and outputs.
  std::function<void(int node, std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs)> trace;
};

/// The tensor on the device. On its way to a GPU it goes through pinned memory, so that the copy runs beside what
/// other workers compute.
at::Tensor brought(const at::Tensor& tensor, at::Device device);

/// Of passes without gradients, as `--precision` says (use_device).
at::ScalarType pass_precision();

class Executor {
 public:
  /// Throws InputError: operators that are not supported (all at once), values that the given ones do not determine.
  Executor(const model::Graph& graph, Request request = {});
  ~Executor();
  Executor(Executor&&) noexcept;

  /// `given` in the order of the request; tensors are converted to the device and precision. Returns the wanted values
  /// in order. Throws InputError that names the node and the shapes it got.
  std::vector<at::Tensor> run(std::span<const at::Tensor> given, const RunOptions& options = {}) const;

  const Request& request() const;
  /// `name (operator)` of a node that RunOptions::trace spoke of; in Mode::kFast nodes are those of the rewritten
  /// graph.
  std::string node_name(int node) const;

 private:
  struct Plan;
  std::unique_ptr<const Plan> plan_;
};

/// Marks the nodes that are needed to compute `wanted` from `given` and the constants.
std::vector<bool> needed_nodes(const model::Graph& graph, std::span<const model::ValueId> given,
                               std::span<const model::ValueId> wanted);

}  // namespace netmend::executor
