// Sequences of tokens: a short sketch of each, by which alike ones are found, and the edit distance that confirms them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace netmend::census {

/// Numbers of a sketch.
constexpr int64_t kSketch = 16;
/// Sequences of fewer tokens are alike by chance: only equal ones count.
constexpr int64_t kShortSequence = 7;
/// Of the longer of two sequences, so much may be put in, left out or replaced.
constexpr double kMostEdits = 0.15;

/// The smallest of sixteen hashes of all runs of two neighbouring tokens (Broder 1997): the part of equal numbers of
/// two sketches is about the part of runs that both sequences have.
std::array<uint32_t, kSketch> sketch_of(std::span<const int64_t> tokens);

/// Tokens to put in, leave out or replace to make one of the other; `most` + 1 where it is more than `most`.
int64_t edit_distance(std::span<const int64_t> a, std::span<const int64_t> b, int64_t most);

/// Nearly the same, and how much: 1 less the edits as a part of the longer one; 0 where they are not.
double alike_sequences(std::span<const int64_t> a, std::span<const int64_t> b);

/// For each sketch of `a` the sketches of `b` that share a pair of numbers with it, at most `most` of each; `below`:
/// only those before it.
std::vector<std::vector<int64_t>> alike_sketches(std::span<const uint32_t> a, std::span<const uint32_t> b, bool below,
                                                 size_t most = 32);

}  // namespace netmend::census
