// Sign-sign MC/DC: a pair of units in connected layers is covered when two inputs exist between which the sign of
// either flips while no other sign of the lower layer does. Sun, Huang, Kroening: Testing Deep Neural Networks, 2018.
// A sign is + where the value is above 0.
//
// Exact in one pass: for each pattern of signs of the lower layer, which upper signs were seen + and which −. Two
// patterns that differ in one bit then give the pairs of that bit.
//
// DeepImportance's program keeps pairs by their numbers within their layers, so that pairs of different layers with
// equal numbers count once.
#pragma once

#include <cstdint>
#include <vector>

#include "observers/coverage/criterion.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

class Mcdc : public Criterion {
 public:
  Mcdc(SpacePtr space, Published published = Published::kCorrected) : space_(std::move(space)), published_(published) {}
  std::string name() const override { return "MCDC"; }
  std::unique_ptr<Tally> fresh() const override;
  Figure figure(const Tally& tally) const override;
  double bytes(int64_t inputs) const override;

 private:
  SpacePtr space_;
  Published published_;
};

/// Sign patterns of one layer and what was seen with them in the next.
class SignTable {
 public:
  SignTable(int64_t lower, int64_t upper);
  void add(const float* lower, const float* upper);
  void merge(const SignTable& later);
  void save(std::ostream& out) const;
  void load(std::istream& in);
  int64_t patterns() const { return int64_t(hashes_.size()); }
  /// Covered pairs as bits, lower × upper rounded up to whole words.
  std::vector<uint64_t> covered() const;
  int64_t upper_words() const { return upper_words_; }

 private:
  uint64_t* pattern(int64_t entry) { return patterns_.data() + entry * lower_words_; }
  const uint64_t* pattern(int64_t entry) const { return patterns_.data() + entry * lower_words_; }
  uint64_t* seen(int64_t entry) { return seen_.data() + entry * 2 * upper_words_; }
  const uint64_t* seen(int64_t entry) const { return seen_.data() + entry * 2 * upper_words_; }
  uint64_t hash(const uint64_t* pattern) const;
  /// The entry of a pattern, or -1. With `flipped` ≥ 0 that bit is read the other way round.
  int64_t find(const uint64_t* pattern, uint64_t hash, int64_t flipped = -1) const;
  int64_t find_or_add(const uint64_t* pattern, uint64_t hash);
  void grow();

  int64_t lower_, upper_, lower_words_, upper_words_;
  std::vector<uint64_t> keys_;      ///< a random number for each bit: hashes are their sums modulo two
  std::vector<int32_t> slots_;      ///< entry + 1 by hash, 0 for none; a power of two
  std::vector<uint64_t> hashes_;    ///< by entry
  std::vector<uint64_t> patterns_;  ///< by entry
  std::vector<uint64_t> seen_;      ///< by entry: upper signs seen +, then those seen −
  std::vector<uint64_t> scratch_;
};

class McdcTally : public Tally {
 public:
  explicit McdcTally(SpacePtr space);
  void add(const UnitBatch& batch) override;
  void merge(const Tally& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  std::vector<SignTable> tables;  ///< one for each connection of the space

 private:
  SpacePtr space_;
};

CriterionRow mcdc_row();

}  // namespace netmend::observers
