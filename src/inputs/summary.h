// What came of many attempts, in figures.
#pragma once

#include <optional>
#include <vector>

#include "stats/intervals.h"

namespace netmend::inputs {

struct Attempt;

/// Of the attempts that succeeded.
struct Spread {
  double mean = 0, median = 0, most = 0;
};

struct ClassSummary {
  int64_t label = 0, made = 0, successes = 0;
};

struct Summary {
  int64_t inputs = 0;                  ///< that were tried
  int64_t made = 0;                    ///< of which something valid was made
  int64_t successes = 0;               ///< that the network predicts otherwise than before
  stats::Estimate rate;                ///< successes of those made; NaN when nothing was made
  std::optional<Spread> l0, l2, linf;  ///< nothing without successes; of ids only l0
  std::vector<ClassSummary> classes;   ///< by label, those that occur
};
Summary summarise(const std::vector<Attempt>& attempts, bool ids);

}  // namespace netmend::inputs
