// Former names, for folders that still use them.
#pragma once

#include "observers/coverage/tknc.h"
#include "observers/coverage/tknp.h"

namespace netmend::observers {

using TopUnits = Tknc;
using TopPatterns = Tknp;

}  // namespace netmend::observers
