// Tries the usual set-ups and names the one that explains why a network does badly, if one does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "preflight/examination.h"
#include "preflight/trial.h"

namespace netmend::preflight {

struct SearchOptions {
  /// Nobody said how inputs are prepared: the best set-up is wanted, however little better it is than the present one.
  bool free = false;
  double work = 1e11;  ///< multiply-adds that a first look at all may take
  /// How far inputs are from what the network remembers of its training, in standard deviations; may be empty.
  std::function<double(const dataset::Batch&)> distance;
};

struct Searched {
  std::vector<Tried> tried;  ///< the best first
  std::optional<Blocker> blocker;
  bool by_loss = false;  ///< the loss convinced, not the mistakes
  /// Why not even the best is believed to be the one of training, where nobody said how inputs are prepared.
  std::string doubt;
  std::vector<std::string> rivals;  ///< lines for netmend.toml, where the doubt is between set-ups
  /// Why a set-up that does much better is not named: something else does as well.
  std::string instead;
  double removed = 0;  ///< share of the mistakes that are gone with the set-up that is named
};
/// Each set-up is looked at on a few inputs, promising ones on all of the first, the best of them on fresh ones. Of
/// these the most accurate is taken; among those that McNemar's test cannot tell from it the one with the lower loss,
/// then the simplest. What a damaged bias would explain as well is not named. Where even the best does worse than the
/// nearest class mean, or than with values stretched or shifted further, nothing is named: `doubt` says why. The same
/// where set-ups of other values fit as well, on all inputs that the work allows.
Searched search_setups(const Trial& trial, const SearchOptions& options = {});

}  // namespace netmend::preflight
