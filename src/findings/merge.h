// Findings that have one cause are told as one.
#pragma once

#include "findings/finding.h"

namespace netmend::findings {

/// A finding that another one explains is noted there (`related`) and taken out; the one that stays takes over the
/// higher level and the larger gain.
std::vector<Finding> merge_related(std::vector<Finding> found);

}  // namespace netmend::findings
