#include "observers/groups.h"

#include <cmath>

#include "base/error.h"
#include "dataset/dataset.h"

namespace netmend::observers {
namespace {

constexpr size_t kMostGroups = 10000;

}  // namespace

stats::Estimate GroupResult::figure(const PredictionSettings& settings) const {
  return settings.task == Task::kNumber ? error.mean_estimate() : stats::rate(right, samples);
}

void GroupCounts::add(const std::vector<SampleRow>& rows) {
  const std::vector<std::string>& columns = data_.info().groups;
  if (columns.empty() || settings_.task == Task::kNone) return;
  const bool two = settings_.by_class() && settings_.classes.size() == 2;
  for (const SampleRow& row : rows) {
    std::vector<std::string> values = data_.groups(row.sample);
    for (size_t column = 0; column < std::min(columns.size(), values.size()); ++column) {
      GroupResult& group = groups_[{column, values[column]}];
      if (groups_.size() > kMostGroups)
        throw InputError(fmt::format("the group columns {} have more than {} values", columns[column], kMostGroups),
                         "A group is a property that many inputs share; leave out columns that name single inputs.");
      group.column = columns[column], group.value = values[column];
      ++group.samples;
      group.right += row.right == SampleRow::kRight;
      if (settings_.task == Task::kNumber && std::isfinite(row.loss)) group.error.add(std::sqrt(double(row.loss)));
      bool positive = two && row.label == double(settings_.positive),
           called = two && row.predicted == double(settings_.positive);
      group.positives += positive, group.called += called, group.found += positive && called;
    }
  }
}

std::vector<GroupResult> GroupCounts::results() const {
  std::vector<GroupResult> all;
  for (const auto& [key, group] : groups_) all.push_back(group);
  return all;
}

}  // namespace netmend::observers
