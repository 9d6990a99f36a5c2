#include "checks/calibration.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stats/intervals.h"

namespace netmend::checks {

Calibration calibration(const std::vector<observers::SampleRow>& rows, int bins) {
  Calibration all;
  for (int i = 0; i < bins; ++i) all.bins.push_back({double(i) / bins, double(i + 1) / bins, 0, 0, 0});
  for (const observers::SampleRow& row : rows) {
    if (row.right == observers::SampleRow::kNotJudged || !std::isfinite(row.confidence)) continue;
    CalibrationBin& bin = all.bins[size_t(std::clamp(int(row.confidence * float(bins)), 0, bins - 1))];
    ++bin.count, bin.correct += row.right, bin.confidence += row.confidence;
    ++all.count, all.accuracy += double(row.right), all.confidence += row.confidence;
  }
  if (all.count == 0) return all;
  double variance = 0;
  for (CalibrationBin& bin : all.bins) {
    if (bin.count == 0) continue;
    const double count = double(bin.count), weight = count / double(all.count);
    bin.confidence /= count;
    const double gap = bin.confidence - double(bin.correct) / count;
    all.ece += std::abs(gap) * weight;
    (gap > 0 ? all.above : all.below) += std::abs(gap) * weight;
    // One success and one failure more, so that few that are all right do not look certain.
    const double rate = (double(bin.correct) + 1) / (count + 2);
    variance += weight * weight * rate * (1 - rate) / count;
    const double confident = std::clamp(bin.confidence, 0.0, 1.0);
    all.ece_chance += weight * std::sqrt(2 / std::numbers::pi * confident * (1 - confident) / count);
  }
  const double half = stats::kDeviations * std::sqrt(variance);
  all.ece_low = std::max(0.0, all.ece - all.ece_chance - half), all.ece_high = std::min(1.0, all.ece + half);
  all.accuracy /= double(all.count), all.confidence /= double(all.count);
  return all;
}

}  // namespace netmend::checks
