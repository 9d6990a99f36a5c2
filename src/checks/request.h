// What a check-up is asked for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "preflight/preflight.h"

namespace netmend::checks {

struct CheckupRequest {
  std::vector<std::string> only,
      skip;               ///< names of checks; `only` empty: all. Either takes the place of netmend.toml's
  std::string reference;  ///< a model, a run folder of eval, or baseline.json; "" for none
  bool anyway = false;    ///< go on although model and data do not seem to belong together
  std::function<void(const preflight::Preflight&)> on_preflight;  ///< told before the long part; may be empty
};

}  // namespace netmend::checks
