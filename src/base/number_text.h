// Words that look like numbers but cannot be used as such.
#pragma once

#include <string>

namespace netmend {

/// NaN or infinite.
bool is_not_finite(const std::string& text);
/// A whole number that no integer holds.
bool is_beyond_64_bits(const std::string& text);

}  // namespace netmend
