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
  double ece_low = 0, ece_high = 0;     ///< its 95 % interval, from the binomial spread of each bin
  double ece_chance = 0;                ///< what so many inputs would show if every confidence were right
  double above = 0, below = 0;          ///< parts of the ECE: confidence above accuracy, and below
  double confidence = 0, accuracy = 0;  ///< means
  int64_t count = 0;
};
Calibration calibration(const std::vector<observers::SampleRow>& rows, int bins = 15);

}  // namespace netmend::checks
