// Names of the operations on units, for help and messages.
#pragma once

#include <string>

namespace netmend::edits {

/// Of operations(), with commas.
std::string operation_names();

}  // namespace netmend::edits
