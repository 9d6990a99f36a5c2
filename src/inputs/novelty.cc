#include "inputs/novelty.h"

#include "base/error.h"

namespace netmend::inputs {

Novelty::Novelty(const observers::Criteria::List& criteria) {
  for (const auto& criterion : criteria) {
    if (auto goals = std::dynamic_pointer_cast<const observers::GoalCriterion>(criterion))
      goals_.push_back({goals, std::vector<uint64_t>(size_t((goals->goals() + 63) / 64))});
    else if (auto patterns = std::dynamic_pointer_cast<const observers::PatternCriterion>(criterion))
      patterns_.push_back({patterns, {}});
    else
      throw InputError(fmt::format("--criteria {}: it is defined for all inputs together, not for one more input",
                                   criterion->name()),
                       "For fuzzing take NC, TKNC, TKNP, KMNC, NBC, SNAC or IDC.");
  }
}

std::vector<int64_t> Novelty::add(const observers::UnitBatch& batch) {
  std::vector<int64_t> fresh(static_cast<size_t>(batch.count()));
  observers::Reached reached;
  for (Goals& own : goals_) {
    reached.clear();
    own.criterion->reach(batch, reached);
    size_t at = 0;
    for (size_t row = 0; row < reached.ends.size(); ++row)
      for (; at < reached.ends[row]; ++at) {
        uint64_t &word = own.bits[size_t(reached.goals[at] / 64)], bit = uint64_t(1) << (reached.goals[at] % 64);
        fresh[row] += !(word & bit);
        word |= bit;
      }
  }
  for (Patterns& own : patterns_)
    for (int64_t row = 0; row < batch.count(); ++row) {
      std::string pattern = own.criterion->pattern(batch, row);
      if (!pattern.empty()) fresh[size_t(row)] += own.seen.insert(std::move(pattern)).second;
    }
  for (int64_t count : fresh) covered_ += count;
  return fresh;
}

}  // namespace netmend::inputs
