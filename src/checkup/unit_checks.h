// What the values inside a network show on real inputs: units that never react, are stuck at a limit, or run away.
#pragma once

#include "checkup/context.h"

namespace netmend::checkup {

void check_units(const Context& context, Found& found);

}  // namespace netmend::checkup
