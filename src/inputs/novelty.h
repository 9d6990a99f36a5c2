// Does an input cover something that none before it did? By any criterion whose goals an input reaches by itself.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "observers/coverage/criteria.h"
#include "observers/coverage/goals.h"
#include "observers/coverage/patterns.h"

namespace netmend::inputs {

class Novelty {
 public:
  /// Throws InputError for criteria that only have a value for all inputs together (NLC, MCDC).
  explicit Novelty(const observers::Criteria::List& criteria);
  /// For each input of the batch, in order: how many goals it is the first to reach.
  std::vector<int64_t> add(const observers::UnitBatch& batch);
  /// Goals reached so far.
  int64_t covered() const { return covered_; }

 private:
  struct Goals {
    std::shared_ptr<const observers::GoalCriterion> criterion;
    std::vector<uint64_t> bits;
  };
  struct Patterns {
    std::shared_ptr<const observers::PatternCriterion> criterion;
    std::unordered_set<std::string> seen;
  };
  std::vector<Goals> goals_;
  std::vector<Patterns> patterns_;
  int64_t covered_ = 0;
};

}  // namespace netmend::inputs
