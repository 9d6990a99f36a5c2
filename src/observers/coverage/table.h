// All coverage criteria, in one table: help, documentation, `netmend coverage` and the contract tests come from its
// rows.
#pragma once

#include <span>

#include "observers/coverage/row.h"

namespace netmend::observers {

/// In the order in which results list them.
std::span<const CriterionRow> criterion_rows();

}  // namespace netmend::observers
