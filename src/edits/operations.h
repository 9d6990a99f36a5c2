// Operations that make edits for a unit: the mutation functions of L. Mühlhahn's thesis "Mutation-Based Accuracy
// Improvements in Neural Networks using Spectrum-Based Fault Localization" (2024, listings 4.6 to 4.9), and scaling
// what the next layers read of a unit.
//
// What differs from the listings: they take the row of a dense kernel (inputs × units) for a neuron, which belongs to
// an input; here weights are always those that lead into the unit. Numbers are rounded to the type that the file
// stores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edits/edit.h"
#include "edits/operation_names.h"
#include "model/layer.h"

namespace netmend::edits {

enum class Target {
  kWeights,   ///< all that lead into the unit; of recurrent layers the rows of all its gates
  kBias,      ///< its bias; of recurrent layers those of all its gates
  kOutgoing,  ///< what the next linear layers read it with
};
enum class Change {
  kSet,             ///< x ← v
  kSetGauss,        ///< x ← g for all, g ~ N(0, v)
  kSetGaussEach,    ///< x ← g, a new one for each
  kScale,           ///< x ← v·x
  kScaleGauss,      ///< x ← g·x for all
  kScaleGaussEach,  ///< x ← g·x, a new one for each
};
struct Operation {
  Target target = Target::kWeights;
  Change change = Change::kSet;
  double value = 0;  ///< v, or the standard deviation
};

/// The operations by name.
struct NamedOperation {
  std::string_view name;    ///< `scale-weights`
  std::string_view thesis;  ///< its function there; "" for ours
  Operation usual;          ///< with the value that the thesis takes by default
};
std::span<const NamedOperation> operations();
/// Throws InputError with the nearest name.
const NamedOperation& find_operation(std::string_view name);

/// The edits; none when nothing changes. What Gaussian numbers come depends on seed and unit alone. Throws InputError:
/// no such unit, no bias, weights that are shared, quantised or computed, readers that are no plain linear layers,
/// values that the stored type cannot hold.
std::vector<Edit> operate(const model::Graph& graph, const model::Layer& layer, int64_t unit,
                          const Operation& operation, uint64_t seed);
/// All weights of a layer times a factor; none where they are shared or quantised.
std::vector<Edit> scale_layer(const model::Graph& graph, const model::Layer& layer, double factor);

}  // namespace netmend::edits
