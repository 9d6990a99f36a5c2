// What makes Python programs record their training, without a change to them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace netmend::diagnosis {

/// The environment under which a program leaves its record in `folder`, an absolute path. The recorder is loaded by
/// every Python that the program starts; the package itself comes last, so that it hides nothing of the user's.
/// `probe`: experiments with a copy of the network once the program has ended.
/// Throws InputError where the Python package is missing.
std::map<std::string, std::string> recorder_environment(const std::string& folder,
                                                        const std::vector<std::string>& stop_when, bool probe = false);

}  // namespace netmend::diagnosis
