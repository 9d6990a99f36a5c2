// What makes a change to a few units cheap: their new values alone are computed from the layer's input, and what the
// next linear operator makes of the difference is added to what it had made before. Found once for a layer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/executor.h"
#include "model/layer.h"
#include "ops/op.h"

namespace netmend::whatif {

/// Numbers that belong to single units, as the operators of a layer read them.
struct UnitConstant {
  model::ValueId read = model::kAbsent;
  int64_t axis = 0;  ///< counts units
};

/// The linear operator behind a layer, as it reads single units.
class Reader {
 public:
  model::ValueId output = model::kAbsent;
  std::vector<model::ValueId> roots;  ///< constants that its weights and bias come from

  /// What it makes of `delta` (inputs × units × positions…) in the units named.
  at::Tensor share(const at::Tensor& delta, std::span<const int64_t> units) const;
  /// Features of the operator's output when each unit is one number to it: rows of units × features; else undefined.
  const at::Tensor& rows() const { return rows_; }
  /// Weights of a convolution, filters × units × window; else undefined.
  const at::Tensor& kernels() const { return kernels_; }
  /// The largest absolute weight that reads a unit.
  double largest(int64_t unit) const { return largest_[size_t(unit)]; }

 private:
  friend class ShortcutFinder;
  at::Tensor rows_;     ///< units × features, dense and one number per unit
  at::Tensor blocks_;   ///< units × positions × features, dense
  at::Tensor kernels_;  ///< weights of a convolution, filters × units × window
  ops::Kernel convolve_;
  std::vector<double> largest_;
};

struct Shortcut {
  model::ValueId input = model::kAbsent;  ///< of the layer
  /// Where units stand side by side along axis 1 and can be replaced: behind the activation and pooling, or the
  /// outputs themselves.
  model::ValueId seat = model::kAbsent;
  std::vector<UnitConstant> constants;
  std::unique_ptr<executor::Executor> chain;  ///< input and constants → values at the seat, for any number of units
  std::optional<Reader> reader;               ///< unset when something else reads the seat
};

/// On a GPU there is no reader: a launch costs more than what the difference saves. `sample`: a few inputs of the
/// layer's network as they are fed. nullopt where units of the layer cannot be computed apart: recurrent layers,
/// grouped convolutions, inputs along another axis.
std::optional<Shortcut> find_shortcut(const model::Graph& graph, const model::Layer& layer, model::ValueId answers,
                                      std::span<const at::Tensor> sample, at::Device device = at::kCPU);

}  // namespace netmend::whatif
