#include "observers/coverage/tknc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "observers/coverage/materials.h"

namespace netmend::observers {

void find_top_k(const float* values, int64_t count, int64_t k, int32_t* places) {
  std::fill(places, places + k, -1);
  int64_t found = 0;
  float least = -std::numeric_limits<float>::infinity();
  for (int64_t u = 0; u < count; ++u) {
    const float value = values[u];
    if (found == k ? !(value > least) : !std::isfinite(value)) continue;
    if (!std::isfinite(value)) continue;
    int64_t at = found < k ? found++ : k - 1;
    for (; at > 0 && values[places[at - 1]] < value; --at) places[at] = places[at - 1];
    places[at] = int32_t(u);
    least = values[places[found - 1]];
  }
}

void Tknc::reach(const UnitBatch& batch, Reached& reached) const {
  std::vector<int32_t> places(static_cast<size_t>(k_));
  for (int64_t row = 0; row < batch.count(); ++row) {
    for (size_t l = 0; l < space_->layers().size(); ++l) {
      find_top_k(batch.input(row) + space_->first(l), space_->units(l), k_, places.data());
      for (int32_t place : places)
        if (place >= 0) reached.goals.push_back(space_->first(l) + place);
    }
    reached.end_input();
  }
}

CriterionRow tknc_row() {
  return {.name = "TKNC",
          .full_name = "top-k neuron coverage",
          .asks = "every unit is among the largest of its layer once",
          .reference = "Ma et al.: DeepGauge, ASE 2018",
          .parameter = {"k", 3, true, 1},
          .lists_uncovered = true,
          .make = [](const CriterionMaterials& m) { return make_criterion<Tknc>(m.space, int64_t(m.parameter)); }};
}

}  // namespace netmend::observers
