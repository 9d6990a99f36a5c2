// How `sbfl-mutation` goes about it; names as users type them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace netmend::repair {

struct SbflChoice {
  std::string measure = "tarantula", mutation = "set-weights", stop = "accuracy";
  std::optional<double> value;  ///< of the mutation; unset for its usual one
  double loss_offset = 0.005, accuracy_offset = 0.01;
  bool halve = true, train = false, refresh = false, as_published = false;
  int64_t at_a_time = 1;
};

}  // namespace netmend::repair
