#include "inputs/summary.h"

#include <algorithm>
#include <map>

#include "inputs/campaign.h"

namespace netmend::inputs {
namespace {

std::optional<Spread> spread_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  double sum = 0;
  for (double value : values) sum += value;
  return Spread{sum / double(values.size()), values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2,
                values.back()};
}

}  // namespace

Summary summarise(const std::vector<Attempt>& attempts, bool ids) {
  Summary summary;
  std::map<int64_t, ClassSummary> classes;
  std::vector<double> l0, l2, linf;
  for (const Attempt& attempt : attempts) {
    ++summary.inputs;
    if (!attempt.made) continue;
    ClassSummary& own = classes[attempt.label];
    own.label = attempt.label;
    ++summary.made, ++own.made;
    if (!attempt.success()) continue;
    ++summary.successes, ++own.successes;
    l0.push_back(attempt.distance.l0), l2.push_back(attempt.distance.l2), linf.push_back(attempt.distance.linf);
  }
  summary.rate = stats::rate(summary.successes, summary.made);
  summary.l0 = spread_of(l0);
  if (!ids) summary.l2 = spread_of(l2), summary.linf = spread_of(linf);
  for (const auto& [label, own] : classes)
    if (label >= 0) summary.classes.push_back(own);
  return summary;
}

}  // namespace netmend::inputs
