// Former names, for folders that still use them.
#pragma once

#include "observers/coverage/nlc.h"

namespace netmend::observers {

using LayerSpread = Nlc;

}  // namespace netmend::observers
