// Which inputs are worth keeping: a small set that reaches every goal that all of them reach, found greedily.
#pragma once

#include <cstdint>
#include <vector>

namespace netmend::adequacy {

/// Goals by number, of one input after the other.
struct InputGoals {
  std::vector<uint32_t> goals;
  std::vector<size_t> starts{0};  ///< of each input's goals, and the end
  uint32_t count = 0;             ///< different numbers
  int64_t inputs() const { return int64_t(starts.size()) - 1; }
};

struct Kept {
  int64_t input = 0;
  int64_t adds = 0;  ///< goals that none before it reached
};
/// In the order they were chosen: each adds most to those before, the first of equal ones. Those that later ones make
/// superfluous are taken out again, so that none can be spared; their goals are then counted to the next that reaches
/// them.
std::vector<Kept> reduce(const InputGoals& goals);

}  // namespace netmend::adequacy
