// Where the numbers of a unit stand in the parameters of a file, whatever lies between a parameter and the operator
// that reads it: transposed and reshaped matrices, gates of recurrent layers, norms that follow.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/layer.h"

namespace netmend::edits {

/// A constant as an operator reads it. `view` shares the memory of the constant, so that its strides tell where each
/// number stands in the file.
struct Seen {
  model::ValueId root = model::kAbsent;  ///< kAbsent when the value is no constant in another form
  at::Tensor view;                       ///< undefined when the form cannot be followed
  std::string refusal;  ///< why operations must leave it alone: quantised, shared, computed; "" when they need not
};
/// Follows a value back through Identity, Cast, Transpose, Reshape, Squeeze, Unsqueeze, Flatten and DequantizeLinear.
Seen see(const model::Graph& graph, model::ValueId id);
/// Flat positions, in the constant `seen` came from, of the numbers that a part of its view shows; ascending.
std::vector<int64_t> positions_of(const Seen& seen, const model::Graph& graph, const at::Tensor& part);

enum class Role {
  kWeight,
  kBias,
  kNorm,  ///< scales, shifts and statistics between the operator and the activation
};

/// One parameter of a layer, cut by its units.
class Part {
 public:
  Role role = Role::kWeight;
  model::ValueId parameter = model::kAbsent;
  std::string refusal;  ///< as in Seen

  /// Flat positions of the unit's numbers, ascending. Precondition: 0 ≤ unit < layer.units.
  std::vector<int64_t> positions(const model::Graph& graph, int64_t unit) const;

 private:
  friend class PartFinder;
  Seen seen_;
  int64_t axis_ = 0;    ///< of the view
  int64_t hidden_ = 0;  ///< recurrent layers: hidden features; units are direction × hidden
};

/// What operations on a layer may find: its parts, and in words why a role has none.
struct Parts {
  std::vector<Part> list;
  std::string no_weight, no_bias;
};
Parts find_parts(const model::Graph& graph, const model::Layer& layer);

/// A linear operator's numbers that read a unit of the layer before it.
struct Reader {
  model::ValueId parameter = model::kAbsent;
  std::vector<int64_t> positions;
};
/// Everything that reads the unit's output, through pooling, norms, activations and flattening. Throws InputError where
/// something else than a plain linear operator reads it, naming that node.
std::vector<Reader> find_readers(const model::Graph& graph, const model::Layer& layer, int64_t unit);

}  // namespace netmend::edits
