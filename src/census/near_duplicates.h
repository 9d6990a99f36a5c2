// Inputs that are nearly the same: re-encoded, re-exposed or re-scaled, found by their descriptors and confirmed
// on the inputs themselves.
#pragma once

#include <vector>

#include "census/census.h"
#include "census/duplicates.h"

namespace netmend::census {

/// Two inputs are near duplicates when their raw values correlate at least so much. Two different ones of MNIST reach
/// 0.987; a picture that was compressed again stays above.
constexpr double kNearlySame = 0.995;

struct NearSearch {
  std::vector<DuplicatePair> pairs;  ///< at most one per input, in order; exact duplicates are not among them
  int64_t looked_at = 0;             ///< inputs that were compared
  int64_t of = 0;                    ///< that there are
  int64_t with = 0;                  ///< inputs of the other part that they were compared with
};

/// Inputs of one part that nearly repeat one of the other. Where the product of both would be more than `most` pairs,
/// evenly spread inputs are compared, and `looked_at` says how many. Sequences of tokens are compared by
/// the runs of tokens that they share and by their edit distance, tables by CensusState::loose (values equal to five
/// digits of a deviation).
NearSearch near_duplicates(const CensusState& part, const dataset::Dataset& data, const CensusState& other,
                           const dataset::Dataset& other_data, int jobs = 0, double most = 2e9);
/// The same within a part: each input that nearly repeats an earlier one.
NearSearch near_duplicates_within(const CensusState& part, const dataset::Dataset& data, int jobs = 0,
                                  double most = 5e8);

/// Candidate pairs by descriptors: for each row of `a` the rows of `b` whose correlation is at least `least`, the most
/// alike first, four at most. `below`: only rows of `b` before the row of `a`. What near_duplicates is made of.
std::vector<std::vector<DuplicatePair>> alike(std::span<const int8_t> a, std::span<const int8_t> b, double least,
                                              bool below, int jobs);

}  // namespace netmend::census
