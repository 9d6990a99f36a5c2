// What criteria are made from, and what making them gives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "observers/coverage/ranges.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

class Idc;

/// Valid while it is used: traces belong to someone else.
struct CriterionMaterials {
  SpacePtr space = nullptr;
  double parameter = 0;
  Published published = Published::kCorrected;
  /// What training data teaches (Profile::materials()); absent without it.
  RangesPtr ranges = nullptr;
  const UnitBatch* traces = nullptr;    ///< of one layer
  size_t layer = 0;                     ///< which
  std::vector<double> importance = {};  ///< of its units; empty when that is not known
  int64_t of_class = -1;                ///< the class that they are important for; -1: all
  /// Of IDC: the numbers m of important units, ascending; whether 0 is a cluster of its own.
  std::vector<int64_t> important = {6, 8, 10, 12};
  bool zero_cluster = false;
};

struct MadeCriteria {
  std::vector<std::shared_ptr<const Criterion>> list;
  std::vector<std::shared_ptr<const Idc>> important = {};  ///< those of the list that look at important units
  std::vector<std::string> notes = {};
  std::string skipped = "";  ///< why there are none, or no more
};

template <typename T, typename... Args>
MadeCriteria make_criterion(Args&&... args) {
  return {{std::make_shared<const T>(std::forward<Args>(args)...)}};
}

}  // namespace netmend::observers
