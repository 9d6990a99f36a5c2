// What the answers show: classes, confusions, confidence, numbers, over-fitting.
#pragma once

#include "checkup/context.h"
#include "selection/label_issues.h"

namespace netmend::checkup {

void check_answers(const Context& context, Found& found);
/// Labels of tests that look wrong. Training labels are not judged: the network has learned their mistakes.
std::vector<selection::LabelIssue> check_labels(const Context& context, Found& found);

/// How sure and how right, in bins of confidence.
struct Bin {
  double low = 0, high = 0;
  int64_t count = 0, right = 0;
  double confidence = 0;  ///< mean
};
struct Calibration {
  std::vector<Bin> bins;
  double error = 0;                     ///< expected calibration error
  double confidence = 0, accuracy = 0;  ///< means
  int64_t count = 0;
};
Calibration calibration(const std::vector<observers::SampleRow>& rows, int bins = 15);

}  // namespace netmend::checkup
