// Runs by their names.
#pragma once

#include <string>

namespace netmend {

/// A folder, a file, or the name of a run in netmend-runs; without a name the newest run there that holds `file`, ""
/// when there is none.
std::string find_run_with(const std::string& file, const std::string& name);

}  // namespace netmend
