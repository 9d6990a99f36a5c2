// A data set whose labels are partly others than it says: for faults that are planted on purpose.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::dataset {

/// The same samples with these class numbers, one per sample.
std::unique_ptr<Dataset> relabelled(std::shared_ptr<const Dataset> data, std::vector<int64_t> labels);
/// The same for data that has no labels: classes with these names.
std::unique_ptr<Dataset> labelled(std::shared_ptr<const Dataset> data, std::vector<int64_t> labels,
                                  std::vector<std::string> classes);
/// The class numbers that it has. Reads all of it.
std::vector<int64_t> read_labels(const Dataset& data);

}  // namespace netmend::dataset
