// Reading single options of a spec.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace netmend::dataset {

using OptionMap = std::map<std::string, std::string>;

std::string text_option(const OptionMap& options, const std::string& key, const std::string& otherwise = "");
/// Words between colons.
std::vector<std::string> list_option(const OptionMap& options, const std::string& key);
/// yes, no, true, false, 1, 0; anything else is an InputError.
bool yes_option(const OptionMap& options, const std::string& key, bool otherwise);
/// A whole number in a range.
int64_t int_option(const OptionMap& options, const std::string& key, int64_t otherwise, int64_t least, int64_t most);

}  // namespace netmend::dataset
