// Names of repair methods, for help and messages.
#pragma once

#include <string>

namespace netmend::repair {

/// `auto` and the names of methods(), with commas.
std::string method_names();

}  // namespace netmend::repair
