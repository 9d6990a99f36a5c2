// Files that list inputs by name: those that must pass, those that someone has accepted as known.
#pragma once

#include <string>
#include <unordered_set>

#include "session/config.h"

namespace netmend::session {

/// Names of inputs that a file lists: its column `id`, else `sample`, else the first value of each line.
std::unordered_set<std::string> read_names(const std::string& path);

/// Names of all inputs that netmend.toml accepts as known today.
std::unordered_set<std::string> accepted_inputs(const Config& config);

}  // namespace netmend::session
