// Former names, for folders that still use them.
#pragma once

#include "observers/coverage/mcdc.h"

namespace netmend::observers {

using SignPairs = Mcdc;

}  // namespace netmend::observers
