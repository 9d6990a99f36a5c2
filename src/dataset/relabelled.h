// A data set whose labels are partly others than it says: for faults that are planted on purpose.
#pragma once

#include <memory>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::dataset {

/// The same samples with these class numbers, one per sample.
std::unique_ptr<Dataset> relabelled(std::shared_ptr<const Dataset> data, std::vector<int64_t> labels);
/// The class numbers that it has. Reads all of it.
std::vector<int64_t> read_labels(const Dataset& data);

}  // namespace netmend::dataset
