// Biases that stand far apart from the others of their layer: training does not leave such ones, damage does.
#pragma once

#include <cstdint>
#include <vector>

#include "edits/edit.h"
#include "model/layer.h"

namespace netmend::edits {

struct OutlyingBias {
  int64_t unit = 0;
  double bias = 0;
  double low = 0, high = 0;  ///< of the other biases of the layer; 0 where all stand apart
  std::vector<Edit> reset;   ///< to the median of the others
};

/// None for layers without stored biases of their own.
std::vector<OutlyingBias> find_outlying_biases(const model::Graph& graph, const model::Layer& layer);

}  // namespace netmend::edits
