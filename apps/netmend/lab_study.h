// Studies: `netmend lab study NAME`. Options of all of them; each uses what it needs.
#pragma once

#include <string>
#include <vector>

#include "netmend/commands.h"

namespace netmend::app {

struct StudyOptions {
  std::vector<std::string> models;  ///< `lenet5@mnist`, `model.onnx@DATA`
  std::vector<std::string> kinds;   ///< of planted faults
  std::vector<std::string> repairs = {"auto"};
  int64_t runs = 3;
  double seconds = 10;
};
struct SbflStudyOptions {
  std::vector<std::string> networks;  ///< empty for all four
  double sample = 1;
  int64_t limit = 0;
  bool as_published = false, trained = false, both = false;
};
int study_sbfl(const Common& common, const SbflStudyOptions& options);

int study_planted(const Common& common, const StudyOptions& options);

}  // namespace netmend::app
