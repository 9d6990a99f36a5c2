// Words of a command that a user will paste.
#pragma once

#include <string>

namespace netmend {

/// A word as one argument of a POSIX shell: quoted unless it is made of plain characters alone.
std::string shell_word(const std::string& word);

}  // namespace netmend
