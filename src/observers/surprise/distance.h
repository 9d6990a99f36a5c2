// Former names, for folders that still use them.
#pragma once

#include "observers/surprise/dsa.h"

namespace netmend::observers {

using DistanceSurprise = Dsa;

}  // namespace netmend::observers
