// Former names, for folders that still use them.
#pragma once

#include "observers/coverage/idc.h"

namespace netmend::observers {

using ImportanceCoverage = Idc;

}  // namespace netmend::observers
