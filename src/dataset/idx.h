// IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist): two zero bytes, the type of the values, the number
// of axes, a big-endian 32-bit size per axis, the values.
#pragma once

#include "dataset/array.h"

namespace netmend::dataset {

Array read_idx(BytesPtr bytes);

}  // namespace netmend::dataset
