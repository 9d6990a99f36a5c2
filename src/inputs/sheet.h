// A picture of changed inputs: original, changed, difference, with the predictions before and after.
#pragma once

#include <string>
#include <vector>

#include "dataset/image_file.h"
#include "inputs/network.h"

namespace netmend::inputs {

struct Shown {
  at::Tensor before, after;  ///< units of one input
  std::string caption;       ///< `FGSM 7 > 3`
};

/// Differences are drawn on grey, brighter where a value rose, and made stronger; each caption says how much.
dataset::Image change_sheet(const std::vector<Shown>& shown, const Subject& changed, bool blue_first);

}  // namespace netmend::inputs
