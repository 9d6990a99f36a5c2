// Which change of settings answers which finding: AutoTrainer's solutions in its order, and our own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "healing/settings.h"

namespace netmend::healing {

struct Change {
  std::string_view name;
  enum How { kSet, kTimes } how = kSet;
  Json value;
};

struct Solution {
  std::string_view kind;    ///< of the finding; `*` where nothing of its own helped
  std::string_view source;  ///< AutoTrainer, or own
  std::vector<Change> changes;
};

/// The rows for a kind, in the order in which they are tried.
std::vector<const Solution*> solutions_for(std::string_view kind);
/// The settings with the change; nothing where the training has no such setting, does not take the value, or has it.
std::optional<Settings> apply(const Solution& solution, const Settings& settings, const Knobs& knobs);

}  // namespace netmend::healing
