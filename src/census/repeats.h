// Inputs that occur more than once in a data set, or in it and in another, exactly or nearly. No tensors: commands and
// other people's programs call it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace netmend::census {

/// An input and the one that it repeats.
struct RepeatedInput {
  int64_t sample = 0, other = 0;
  std::string id, other_id, label, other_label;  ///< labels may be empty
  double correlation = 1;                        ///< of values; 1 for exact duplicates
};

struct Repeats {
  std::string spec, against;  ///< `against` is "" for duplicates within one data set
  int64_t inputs = 0, other_inputs = 0;
  std::vector<RepeatedInput> exact, near;
  std::string near_rule;                             ///< when inputs are near-duplicates, in words
  int64_t looked_at = 0, of = 0, compared_with = 0;  ///< inputs that near-duplicates were looked for among
  int64_t conflicting = 0;                           ///< exact duplicates with different labels
};
/// Every input but the first of its kind, or every input that `against` has too. Throws InputError.
Repeats find_repeats(const std::string& spec, const std::string& against, int64_t limit, int jobs);

/// What could be dropped, a row per input.
void write_repeats(const std::string& path, const Repeats& repeats);

}  // namespace netmend::census
