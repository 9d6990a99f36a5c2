// Known faults put into a sound network, so that what finds and repairs them can be judged. The kinds stand in kinds.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edits/edit.h"
#include "faults/kinds.h"
#include "model/layer.h"

namespace netmend::faults {

struct Fault {
  std::string kind;
  std::vector<std::string> units;  ///< `conv1/7`; of damaged layers none
  std::string layer;               ///< of damaged layers
  std::vector<edits::Edit> edits;
};

struct Options {
  int64_t count = 1;    ///< units, layers, or pairs of classes
  double strength = 1;  ///< 1 is a fault of the usual size
  std::string layer;    ///< only there; "" for all but the output layer
  uint64_t seed = 42;
};
/// The edits that plant a fault of kind kUnit, kLayer or kClasses. `layers` in the order of the network, the output
/// layer last. Throws InputError: no such layer, fewer units than asked for, nothing that can be changed.
Fault plant(const model::Graph& graph, const std::vector<model::Layer>& layers, const Kind& kind,
            const Options& options);

}  // namespace netmend::faults
