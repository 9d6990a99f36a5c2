// Units and layers to blame, and a repair of them that is tried and confirmed on held-out inputs.
#pragma once

#include <optional>
#include <string>

#include "localise/blame.h"
#include "repair/mend.h"

namespace netmend::checks {

/// What was searched for and tried, for the views.
struct TrialRepair {
  std::optional<localise::Blame> blame;
  std::optional<repair::Outcome> repair;
  std::string repaired;  ///< the unit or layer that it was about
  int64_t holdout = 0;
};

}  // namespace netmend::checks
