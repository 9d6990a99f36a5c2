// Names of the architectures that zoo::make knows, for help and messages.
#pragma once

#include <string>
#include <vector>

namespace netmend::zoo {

/// All names; dense networks of any size stand as `mlp:784-64-10`.
const std::vector<std::string>& names();
/// Names of the ways to draw fresh weights.
const std::vector<std::string>& scheme_names();

}  // namespace netmend::zoo
