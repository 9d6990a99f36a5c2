#include "observers/coverage/nc.h"

#include <algorithm>
#include <cmath>

#include "observers/coverage/materials.h"

namespace netmend::observers {

void Nc::reach(const UnitBatch& batch, Reached& reached) const {
  for (int64_t row = 0; row < batch.count(); ++row) {
    const float* values = batch.input(row);
    for (size_t l = 0; l < space_->layers().size(); ++l) {
      const int64_t first = space_->first(l), end = space_->first(l + 1);
      double low = batch.low[size_t(row * batch.layers) + l], high = batch.high[size_t(row * batch.layers) + l];
      if (published_ == Published::kNlc) {
        low = INFINITY, high = -INFINITY;
        for (int64_t u = first; u < end; ++u)
          low = std::min<double>(low, values[u]), high = std::max<double>(high, values[u]);
      }
      const bool scaled = published_ != Published::kDeepGini && published_ != Published::kDnnTip;
      if (scaled && !(high > low && std::isfinite(high - low))) continue;
      for (int64_t u = first; u < end; ++u) {
        double value = values[u];
        if (!std::isfinite(value)) continue;
        if (scaled) value = (value - low) / (high - low);
        if (published_ == Published::kDeepGini) value = 1 / (1 + std::exp(-value));
        if (value > threshold_) reached.goals.push_back(u);
      }
    }
    reached.end_input();
  }
}

CriterionRow nc_row() {
  return {.name = "NC",
          .full_name = "neuron coverage",
          .asks = "every unit is strongly active once",
          .reference = "Pei, Cao, Yang, Jana: DeepXplore, SOSP 2017",
          .parameter = {"threshold", 0.75},
          .lists_uncovered = true,
          .make = [](const CriterionMaterials& m) { return make_criterion<Nc>(m.space, m.parameter, m.published); }};
}

}  // namespace netmend::observers
