#include "observers/coverage/tknp.h"

#include <algorithm>

#include "observers/coverage/materials.h"
#include "observers/coverage/tknc.h"

namespace netmend::observers {

std::string Tknp::pattern(const UnitBatch& batch, int64_t row) const {
  std::vector<int32_t> all(space_->layers().size() * size_t(k_));
  bool any = false;
  for (size_t l = 0; l < space_->layers().size(); ++l) {
    int32_t* places = all.data() + l * size_t(k_);
    find_top_k(batch.input(row) + space_->first(l), space_->units(l), k_, places);
    any = any || places[0] >= 0;
    if (published_ == Published::kDeepImportance) std::reverse(places, places + k_);
    if (published_ != Published::kDeepImportance && published_ != Published::kNlc) std::sort(places, places + k_);
  }
  if (!any) return {};
  return std::string(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(int32_t));
}

CriterionRow tknp_row() {
  return {.name = "TKNP",
          .full_name = "top-k neuron patterns",
          .asks = "different sets of largest units",
          .reference = "Ma et al.: DeepGauge, ASE 2018",
          .parameter = {"k", 3, true, 1},
          .memory = CriterionRow::Memory::kPerInput,
          .make = [](const CriterionMaterials& m) {
            return make_criterion<Tknp>(m.space, int64_t(m.parameter), m.published);
          }};
}

}  // namespace netmend::observers
