// Element types as NPY files name them.
#pragma once

#include <string>

#include "model/element.h"

namespace netmend::model {

/// `<f4`, `|u1` …; "" where NumPy has no such type.
std::string numpy_type(Element type);

}  // namespace netmend::model
