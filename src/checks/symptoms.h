// Symptoms that a repair on unseen inputs makes go away belong to what was repaired.
#pragma once

#include "checks/observed.h"
#include "checks/results.h"

namespace netmend::checks {

/// Confusions, weak classes and slices, and clusters of failures of which the confirmed repair of one unit or layer
/// removes most are noted there and taken out.
void explain_symptoms(const Observed& seen, Results& results);

}  // namespace netmend::checks
