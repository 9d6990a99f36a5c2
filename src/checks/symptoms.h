// Symptoms belong to their cause: those that a repair on unseen inputs makes go away to what was repaired, those that
// one group's inputs have alone to that group.
#pragma once

#include "checks/observed.h"
#include "checks/results.h"

namespace netmend::checks {

/// Confusions, weak classes and slices, and clusters of failures of which the confirmed repair of one unit or layer
/// removes most are noted there and taken out.
void explain_symptoms(Observed& seen, Results& results);

/// The same of those whose failures lie mostly in one group that is told of as serious, a camera or a site, and of
/// damage whose repair fixes mostly that; and of classes that are never predicted or swapped.
void explain_by_groups(const Observed& seen, Results& results);

}  // namespace netmend::checks
