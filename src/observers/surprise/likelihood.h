// Former names, for folders that still use them.
#pragma once

#include "observers/surprise/lsa.h"

namespace netmend::observers {

using LikelihoodSurprise = Lsa;

}  // namespace netmend::observers
