// The shared library is made of the folders; a target needs a source of its own.
#include "base/version.h"

extern "C" const char* netmend_version() { return netmend::kVersion; }
