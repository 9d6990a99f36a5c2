#include "checks/calibration.h"

#include <algorithm>
#include <cmath>

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
  for (CalibrationBin& bin : all.bins) {
    if (bin.count == 0) continue;
    bin.confidence /= double(bin.count);
    all.ece +=
        std::abs(bin.confidence - double(bin.correct) / double(bin.count)) * double(bin.count) / double(all.count);
  }
  all.accuracy /= double(all.count), all.confidence /= double(all.count);
  return all;
}

}  // namespace netmend::checks
