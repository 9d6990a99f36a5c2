// A wheel without a LibTorch of its own runs with that of the PyTorch that is installed.
#pragma once

#include <string>

namespace netmend::app {

/// Puts the libraries of the installed PyTorch on the loader's path, when the file torch-version in `folder` (with its
/// last slash) says which version the programs there were built with; without that file there is nothing to do.
/// PyTorch is what NETMEND_TORCH names (the package's front in Python sets it; empty: that Python has none), or else
/// what lies beside the package. False when it is missing or of another version; stderr says so.
bool use_installed_torch(const std::string& folder);

}  // namespace netmend::app
