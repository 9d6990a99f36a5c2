// Tries the usual set-ups and names the one that explains why a network does badly, if one does.
#pragma once

#include <optional>
#include <vector>

#include "preflight/examination.h"
#include "preflight/trial.h"

namespace netmend::preflight {

struct Searched {
  std::vector<Tried> tried;  ///< the best first
  std::optional<Blocker> blocker;
};
/// Each set-up is looked at on a few inputs, promising ones on all of the first, and what convinces there must hold on
/// the fresh ones too.
Searched search_setups(const Trial& trial);

}  // namespace netmend::preflight
