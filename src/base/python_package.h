// Where the Python package is: what netmend runs inside other people's Python programs comes from there.
#pragma once

#include <string>

namespace netmend {

/// The folder that holds `netmend/`: $NETMEND_PYTHON, else share/netmend/python beside the program's folder, else the
/// source tree that the program was built from. Throws InputError where none of them has it.
std::string python_package_folder();

}  // namespace netmend
