// Where the files of built-in data sets are found: $NETMEND_DATA, the user's cache folder, what Debian packages
// install.
#pragma once

#include <string>
#include <vector>

namespace netmend::dataset {

/// Folders that may hold `name`, the most specific first; they need not exist.
std::vector<std::string> data_folders(const std::string& name);

/// The first existing one of `names` in a folder, plain or with .gz added; "" when there is none.
std::string file_in(const std::string& folder, const std::vector<std::string>& names);

/// Says what was looked for where, and how to get it.
[[noreturn]] void data_missing(const std::string& name, const std::string& wanted);

}  // namespace netmend::dataset
