// NPY files, NumPy's format for one array (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), in
// versions 1 to 3, either byte order, either order of axes.
#pragma once

#include "dataset/array.h"

namespace netmend::dataset {

Array read_npy(BytesPtr bytes);

}  // namespace netmend::dataset
