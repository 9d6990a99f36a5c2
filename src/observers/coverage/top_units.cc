#include "observers/coverage/top_units.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace netmend::observers {
namespace {

/// Places of the k largest values, largest first; −1 where there are fewer. What is not a number is never among them.
void largest(const float* values, int64_t count, int64_t k, int32_t* places) {
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

}  // namespace

void TopUnits::reach(const UnitBatch& batch, Reached& reached) const {
  std::vector<int32_t> places(static_cast<size_t>(k_));
  for (int64_t row = 0; row < batch.count(); ++row) {
    for (size_t l = 0; l < space_->layers().size(); ++l) {
      largest(batch.input(row) + space_->first(l), space_->units(l), k_, places.data());
      for (int32_t place : places)
        if (place >= 0) reached.goals.push_back(space_->first(l) + place);
    }
    reached.end_input();
  }
}

std::string TopPatterns::pattern(const UnitBatch& batch, int64_t row) const {
  std::vector<int32_t> all(space_->layers().size() * size_t(k_));
  bool any = false;
  for (size_t l = 0; l < space_->layers().size(); ++l) {
    int32_t* places = all.data() + l * size_t(k_);
    largest(batch.input(row) + space_->first(l), space_->units(l), k_, places);
    any = any || places[0] >= 0;
    if (published_ == Published::kDeepImportance) std::reverse(places, places + k_);
    if (published_ != Published::kDeepImportance && published_ != Published::kNlc) std::sort(places, places + k_);
  }
  if (!any) return {};
  return std::string(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(int32_t));
}

}  // namespace netmend::observers
