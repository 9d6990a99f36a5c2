// Inputs that occur more than once: within a part, between parts, with other labels.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace netmend::census {

/// Inputs of equal content, at least two, in order; groups in the order of their first.
std::vector<std::vector<int64_t>> equal_groups(std::span<const uint64_t> hashes);

/// An input and one that it repeats.
struct DuplicatePair {
  int64_t sample = 0;
  int64_t other = 0;
  double alike = 1;  ///< correlation of values; 1 for equal ones
};
/// For each input of `hashes` that also occurs in `others`: the first such one.
std::vector<DuplicatePair> exact_duplicates(std::span<const uint64_t> hashes, std::span<const uint64_t> others);

/// Equal inputs with different labels. `labels` that are NaN count as none.
struct Conflict {
  std::vector<int64_t> samples;
  int64_t wrong_at_best = 0;  ///< of these, how many any prediction must get wrong
};
std::vector<Conflict> conflicts(std::span<const uint64_t> hashes, std::span<const float> labels);

}  // namespace netmend::census
