// Two models of one structure: which parameters, layers and units differ, by how much, and the edits that lead from one
// to the other.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edits/edit.h"
#include "model/layer.h"

namespace netmend::edits {

struct Amount {
  int64_t values = 0, changed = 0;
  double largest = 0;            ///< largest change of a value; infinite where a value became no number or was none
  double moved = 0, length = 0;  ///< sums of squares: of the changes, of the values before
  double relative() const;       ///< length of the change over the length before; infinite from nothing
  void add(double before, double after);
  void add(const Amount& other);
  void add_change(const Amount& other);  ///< its values are counted already
};

struct ParameterChange {
  std::string name, layer;  ///< layer: "" when none owns it
  std::vector<int64_t> shape;
  Amount amount;
};
struct UnitChange {
  std::string name, layer;
  Amount amount;
};
struct LayerChange {
  std::string name;
  int64_t units = 0, units_changed = 0;
  Amount amount;
};

/// Each list by relative change, largest first.
struct Difference {
  int64_t parameters = 0;  ///< compared
  Amount total;            ///< `length` is that of the parameters that differ
  std::vector<ParameterChange> changed;
  std::vector<LayerChange> layers;
  std::vector<UnitChange> units;
};

/// Constants of the two models that stand in the same place. Names may differ; operators, attributes, sizes and types
/// may not: InputError that says what differs first.
std::vector<std::pair<model::ValueId, model::ValueId>> matching_constants(const model::Graph& a, const model::Graph& b);

/// `layers` are those of `a`. Values are compared bit by bit (a zero that changed its sign has changed).
Difference compare(const model::Graph& a, const model::Graph& b, std::span<const model::Layer> layers);
/// The edits that turn `a` into `b`, cut along the units' axis where a layer owns the parameter and this is not
/// wasteful.
std::vector<Edit> edits_between(const model::Graph& a, const model::Graph& b, std::span<const model::Layer> layers);

}  // namespace netmend::edits
