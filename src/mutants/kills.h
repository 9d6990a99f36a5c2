// Which input kills which mutant, and what follows from that: scores, tests that alone kill something, mutants of equal
// behaviour, the smallest set of tests with the same score. Plain functions of bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stats/intervals.h"

namespace netmend::mutants {

/// When a mutant is killed.
enum class Kill {
  kClass,   ///< DeepMutation: by class; a class is killed when an input of it that was predicted right becomes wrong
  kStrict,  ///< by any changed prediction
  kStatistical,  ///< DeepCrime: accuracies over several trainings of the network differ, p < 0.05 and an effect of 0.5
};
Kill find_kill(const std::string& name);  ///< Throws InputError.

class KillTable {
 public:
  KillTable(Kill kill, size_t mutants, std::vector<int32_t> classes, int64_t class_count);

  Kill kill() const { return kill_; }
  size_t mutants() const { return mutants_; }
  int64_t inputs() const { return int64_t(classes_.size()); }
  /// Goals per mutant: classes for Kill::kClass, else 1.
  int64_t goals() const { return kill_ == Kill::kClass ? class_count_ : 1; }
  /// Of an input: its class, or 0.
  int32_t goal(int64_t input) const { return kill_ == Kill::kClass ? classes_[size_t(input)] : 0; }

  void set(size_t mutant, int64_t input) { bits_[size_t(input) * words_ + mutant / 64] |= uint64_t(1) << mutant % 64; }
  bool get(size_t mutant, int64_t input) const {
    return bits_[size_t(input) * words_ + mutant / 64] >> mutant % 64 & 1;
  }
  /// The mutants that an input kills, 64 a word.
  std::span<const uint64_t> killed_by(int64_t input) const { return {bits_.data() + size_t(input) * words_, words_}; }
  size_t words() const { return words_; }

 private:
  Kill kill_;
  size_t mutants_, words_;
  std::vector<int32_t> classes_;
  int64_t class_count_;
  std::vector<uint64_t> bits_;  ///< input by input
};

/// What a set of tests kills: for every mutant the goals that are met.
struct Killed {
  std::vector<int32_t> goals;     ///< by mutant: how many of KillTable::goals()
  std::vector<int64_t> inputs;    ///< by mutant: tests that kill it
  std::vector<int64_t> by_class;  ///< by goal: mutants for which it is met
};
/// `tests` empty: all inputs of the table.
Killed killed(const KillTable& table, const std::vector<int64_t>& tests = {});
/// Mean over the mutants named of goals met over goals; with its 95 % interval over mutants (a draw from all mutants).
stats::Estimate score(const KillTable& table, const Killed& killed, const std::vector<size_t>& mutants);

/// A test, and the mutants (for Kill::kClass: mutant and class) that no other test kills.
struct LoneKiller {
  int64_t input = 0, alone = 0;
};
std::vector<LoneKiller> lone_killers(const KillTable& table);

/// Few tests that together meet every goal that all tests meet: each the one that meets most of what is left, without
/// those that later ones made needless. No smaller set may exist; to find out is NP-hard.
std::vector<int64_t> few_tests(const KillTable& table);
/// No set of fewer tests meets all goals: so many goals have no test in common.
int64_t fewest_tests(const KillTable& table);

}  // namespace netmend::mutants
