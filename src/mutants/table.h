// The table of operators: what each makes of a place. Private to the folder.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/random.h"
#include "mutants/mutants.h"

namespace netmend::mutants {

/// What operators read.
struct Ground {
  const stream::Subject& subject;
  const std::vector<model::Layer>& layers;
  std::vector<model::ValueId> outputs;                          ///< by layer: the first output of its operator
  std::vector<std::vector<int64_t>> input_shapes, post_shapes;  ///< by layer, of a few inputs
  std::vector<Strength> strengths;                              ///< that the search for inhibitors found

  const model::Graph& graph() const { return subject.graph; }
  const model::Layer& layer(const Mutant& mutant) const { return layers[size_t(mutant.layer)]; }
};

/// A place an operator may change: a layer, and a number whose meaning is the operator's.
struct Place {
  int layer = -1;
  int64_t number = -1;
};

struct Row {
  Operator op;
  /// All places, in the order of the network.
  std::vector<Place> (*places)(const Ground& ground);
  /// Fills edits, or graph and from, and completes the id. Leaves both empty where nothing would change; throws
  /// InputError where the place cannot be changed. `random` belongs to this mutant.
  void (*make)(const Ground& ground, Random& random, Mutant& mutant);
};
std::span<const Row> rows();

}  // namespace netmend::mutants
