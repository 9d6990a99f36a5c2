// What the data shows: classes, copies, leaks between parts, odd values, differences between parts. Each finding
// carries what it does to the metric; most of these cost nothing, and are notes then.
#pragma once

#include "census/census.h"
#include "checkup/context.h"

namespace netmend::checkup {

/// From a census that rode on the pass. `train` may be null.
void check_data(const Context& context, const census::CensusState& test, const census::CensusState* train,
                Found& found);
/// The same; reads the data once more to take the census.
void check_data(const Context& context, Found& found);

}  // namespace netmend::checkup
