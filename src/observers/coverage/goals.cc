#include "observers/coverage/goals.h"

#include <bit>

#include "base/error.h"

namespace netmend::observers {

std::unique_ptr<Tally> GoalCriterion::fresh() const { return std::make_unique<GoalTally>(*this); }

Figure GoalCriterion::figure(const Tally& tally) const {
  const auto& reached = dynamic_cast<const GoalTally&>(tally);
  Figure figure{name(), parameters()};
  figure.total = 0;
  int64_t without = 0;
  for (size_t l = 0; l < space_->layers().size(); ++l) {
    Figure::Part part{space_->layers()[l].name};
    for (int64_t unit = space_->first(l); unit < space_->first(l + 1); ++unit) {
      if (!has_goals(unit)) {
        ++without;
        continue;
      }
      part.total += double(counted_a_unit());
      part.covered += double(reached.reached_of(unit));
    }
    figure.covered += part.covered, figure.total += part.total;
    figure.layers.push_back(std::move(part));
  }
  figure.value = figure.total > 0 ? figure.covered / figure.total : 0;
  if (without > 0)
    figure.notes.push_back(
        fmt::format("{} of {} units have one and the same value on all training inputs and do not count", without,
                    space_->units()));
  return figure;
}

std::optional<int64_t> GoalCriterion::reach_by_input(const UnitBatch& batch, Reached& reached) const {
  if (goals() >= UINT32_MAX) return {};
  reach(batch, reached);
  return goals();
}

std::vector<int64_t> GoalCriterion::uncovered_units(const Tally& tally) const {
  const auto& reached = dynamic_cast<const GoalTally&>(tally);
  std::vector<int64_t> units;
  for (int64_t unit = 0; unit < space_->units(); ++unit)
    if (has_goals(unit) && reached.reached_of(unit) == 0) units.push_back(unit);
  return units;
}

void GoalTally::add(const UnitBatch& batch) {
  scratch_.clear();
  criterion_.reach(batch, scratch_);
  for (int64_t goal : scratch_.goals) bits_[size_t(goal / 64)] |= uint64_t(1) << (goal % 64);
}

void GoalTally::merge(const Tally& later) {
  const auto& other = dynamic_cast<const GoalTally&>(later);
  for (size_t i = 0; i < bits_.size(); ++i) bits_[i] |= other.bits_[i];
}

int64_t GoalTally::reached_of(int64_t unit) const {
  const int64_t first = unit * criterion_.goals_a_unit(), end = first + criterion_.goals_a_unit();
  int64_t count = 0;
  for (int64_t at = first; at < end;) {
    if (at % 64 == 0 && at + 64 <= end) {
      count += std::popcount(bits_[size_t(at / 64)]);
      at += 64;
    } else {
      count += reached(at++);
    }
  }
  return count;
}

void GoalTally::save(std::ostream& out) const {
  stream::put(out, std::string(reinterpret_cast<const char*>(bits_.data()), bits_.size() * sizeof(uint64_t)));
}

void GoalTally::load(std::istream& in) {
  std::string bytes = stream::get_text(in);
  if (bytes.size() != bits_.size() * sizeof(uint64_t)) fail("the state file is damaged");
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(bits_.data()));
}

}  // namespace netmend::observers
