// How much parameters, layers and units of two models differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace netmend::edits {

struct Amount {
  int64_t values = 0, changed = 0;
  double largest = 0;            ///< largest change of a value; infinite where a value became or was NaN or Inf
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

}  // namespace netmend::edits
