// The number of a value in a graph.
#pragma once

#include <cstdint>

namespace netmend::model {

using ValueId = int32_t;
constexpr ValueId kAbsent = -1;  ///< an optional input or output that a node leaves out

}  // namespace netmend::model
