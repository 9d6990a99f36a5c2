#include "observers/flips.h"

#include <cmath>

#include "dataset/dataset.h"

namespace netmend::observers {

Before before_of(const PredictionSettings& settings, const SampleRow& row) {
  double error = settings.task == Task::kNumber ? std::sqrt(double(row.loss)) : 0;
  return {row.right, std::isnan(error) ? INFINITY : error};
}

Flips::Flips(const PredictionSettings& settings, const dataset::Dataset& data) : settings_(settings), data_(data) {
  if (settings.by_class()) per_class_.resize(settings.classes.size());
}

Change Flips::add(const Before& before, const SampleRow& after) {
  Before now = before_of(settings_, after);
  Change change = Change::kNone;
  if (settings_.task == Task::kNumber && settings_.tolerance < 0)
    change = now.error < before.error ? Change::kFixed : now.error > before.error ? Change::kBroken : Change::kNone;
  else if (before.right != now.right)
    change = now.right == SampleRow::kRight ? Change::kFixed : Change::kBroken;
  if (std::isfinite(now.error - before.error)) difference_.add(now.error - before.error);
  auto count = [&](FlipCount& into) {
    ++into.samples;
    into.right_before += before.right == SampleRow::kRight;
    into.right_after += now.right == SampleRow::kRight;
    into.fixed += change == Change::kFixed;
    into.broken += change == Change::kBroken;
  };
  count(whole_);
  if (after.label >= 0 && size_t(after.label) < per_class_.size()) count(per_class_[size_t(after.label)]);
  if (!data_.info().groups.empty()) {
    std::vector<std::string> values = data_.groups(after.sample);
    for (size_t column = 0; column < values.size(); ++column) count(groups_[{column, values[column]}]);
  }
  return change;
}

std::vector<Flips::Group> Flips::groups() const {
  std::vector<Group> all;
  for (const auto& [key, count] : groups_) all.push_back({data_.info().groups[key.first], key.second, count});
  return all;
}

Verdict judge_change(const stats::Estimate& change, double margin) {
  if (change.low > 0) return Verdict::kBetter;
  if (change.low >= -margin) return Verdict::kNotWorse;
  return change.high < -margin ? Verdict::kWorse : Verdict::kUnclear;
}

const char* verdict_words(Verdict verdict) {
  const char* words[] = {"better", "not worse", "unclear", "worse"};
  return words[int(verdict)];
}

}  // namespace netmend::observers
