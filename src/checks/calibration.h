// Confidence against accuracy: the bins of a reliability diagram and the expected calibration error.
#pragma once

#include <cstdint>
#include <vector>

#include "observers/result.h"

namespace netmend::checks {

struct CalibrationBin {
  double low = 0, high = 0;
  int64_t count = 0, correct = 0;
  double confidence = 0;  ///< mean
};
struct Calibration {
  std::vector<CalibrationBin> bins;
  double ece = 0;                       ///< expected calibration error
  double confidence = 0, accuracy = 0;  ///< means
  int64_t count = 0;
};
Calibration calibration(const std::vector<observers::SampleRow>& rows, int bins = 15);

}  // namespace netmend::checks
