// Former names, for folders that still use them.
#pragma once

#include "observers/coverage/nc.h"

namespace netmend::observers {

using NeuronCoverage = Nc;

}  // namespace netmend::observers
