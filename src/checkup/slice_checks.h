// Where the network is weak: rules over columns and properties, and groups whose rates differ.
#pragma once

#include "census/census.h"
#include "checkup/context.h"
#include "slices/rules.h"

namespace netmend::checkup {

/// `test`: the census that rode on the pass. Returns the slices that are weak.
std::vector<slices::Slice> check_slices(const Context& context, const census::CensusState& test, Found& found);
/// The same; reads the data once more to take the census.
void check_slices(const Context& context, Found& found);

}  // namespace netmend::checkup
