// Former names, for folders that still use them.
#pragma once

#include "observers/coverage/kmnc.h"
#include "observers/coverage/nbc_snac.h"

namespace netmend::observers {

using SectionCoverage = Kmnc;

}  // namespace netmend::observers
