#include "selection/label_issues.h"

#include <algorithm>

namespace netmend::selection {

using observers::TopRow;

std::vector<double> class_thresholds(std::span<const TopRow> rows, int64_t classes) {
  std::vector<double> sums(static_cast<size_t>(classes), 0), counts = sums;
  for (const TopRow& row : rows)
    if (row.label >= 0 && row.classes[0] >= 0) sums[size_t(row.label)] += row.given, ++counts[size_t(row.label)];
  for (size_t c = 0; c < sums.size(); ++c) sums[c] = counts[c] > 0 ? sums[c] / counts[c] : 2;
  return sums;
}

double ruled_out_share(std::span<const TopRow> rows) {
  std::vector<double> shares;
  for (const TopRow& row : rows)
    if (row.label >= 0 && row.classes[0] == row.label)
      shares.push_back(double(row.probabilities[1]) / row.probabilities[0]);
  if (shares.empty()) return -1;
  auto place = shares.begin() + std::ptrdiff_t(kClearest * double(shares.size() - 1));
  std::nth_element(shares.begin(), place, shares.end());
  return *place;
}

std::vector<LabelIssue> label_issues(std::span<const TopRow> rows, int64_t classes) {
  const std::vector<double> thresholds = class_thresholds(rows, classes);
  const double ruled_out = ruled_out_share(rows);
  std::vector<LabelIssue> issues;
  for (const TopRow& row : rows) {
    if (row.label < 0 || row.classes[0] < 0) continue;
    for (size_t k = 0; k < row.classes.size() && row.classes[k] >= 0; ++k) {
      const int32_t likely = row.classes[k];
      if (row.probabilities[k] < thresholds[size_t(likely)]) continue;
      // The first that reaches its threshold is the likeliest that does.
      if (likely == row.label || row.given > ruled_out * row.probabilities[k]) break;
      double other = row.classes[0] == row.label ? row.probabilities[1] : row.probabilities[0];
      issues.push_back({row.sample, row.label, likely, row.probabilities[k], row.given - other});
      break;
    }
  }
  std::stable_sort(issues.begin(), issues.end(),
                   [](const LabelIssue& a, const LabelIssue& b) { return a.margin < b.margin; });
  return issues;
}

}  // namespace netmend::selection
