// Known faults put into a sound network, so that what finds and repairs them can be judged. One row a kind.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edits/edit.h"
#include "model/layer.h"

namespace netmend::faults {

struct Kind {
  std::string_view name;   ///< `random-weights`
  std::string_view story;  ///< what happened, in words
  enum Of { kUnit, kLayer, kClasses, kTraining } of = kUnit;
};
std::span<const Kind> kinds();
/// Throws InputError with the nearest name.
const Kind& find_kind(const std::string& name);

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
