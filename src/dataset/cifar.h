// CIFAR-10 in its binary form: records of one label byte and 3072 bytes, red, green and blue planes of 32×32.
#pragma once

#include <string>
#include <vector>

#include "dataset/array_dataset.h"

namespace netmend::dataset {

struct CifarArrays {
  Array images, labels;
};
/// The records of these files one after the other.
CifarArrays read_cifar(const std::vector<BytesPtr>& files);

/// The files in `folder` that hold a part (train, test, all): data_batch_1.bin … or any whose names say so, packed or
/// not.
std::vector<std::string> cifar_files(const std::string& folder, const std::string& split);

}  // namespace netmend::dataset
