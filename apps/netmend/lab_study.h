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
int study_planted(const Common& common, const StudyOptions& options);

}  // namespace netmend::app
