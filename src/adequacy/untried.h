// What tests leave untried of the most important units: regions of their values, and combinations of those.
#pragma once

#include <string>
#include <vector>

#include "observers/coverage/idc.h"

namespace netmend::adequacy {

/// A region of an important unit's values, around one centroid.
struct Region {
  int64_t unit = 0;     ///< in its layer
  int64_t rank = 0;     ///< by importance, from 1
  int64_t cluster = 0;  ///< from 0, and of how many
  int64_t clusters = 0;
  double low = 0, high = 0;  ///< of training values in it
  int64_t training = 0, tests = 0;
  std::vector<int64_t> samples;  ///< the first training inputs in it
};
/// All regions, units by importance. `training`: traces of the layer; `tests`: its values for tests, in the same form.
std::vector<Region> find_regions(const observers::Idc& coverage, const observers::UnitBatch& training,
                                 const observers::UnitBatch& tests);

struct Combination {
  std::string clusters;  ///< one byte a unit
  int64_t training = 0;
  std::vector<int64_t> samples;  ///< the first training inputs that show it
};
struct Combinations {
  int64_t training = 0, tests = 0, both = 0;  ///< different ones
  std::vector<Combination> untried;           ///< in training and not in tests, the most frequent first
};
Combinations find_combinations(const observers::Idc& coverage, const observers::UnitBatch& training,
                               const observers::UnitBatch& tests);

}  // namespace netmend::adequacy
