// A picture of many samples at once, grouped by class: the quickest way to see whether data is what it should be.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "dataset/dataset.h"
#include "dataset/image_file.h"

namespace netmend::dataset {

/// The sheet as an image. Samples without a picture are passed over; throws InputError when none has one.
Image contact_sheet(const Dataset& data, std::span<const int64_t> samples, int64_t columns);
void write_contact_sheet(const Dataset& data, std::span<const int64_t> samples, int64_t columns,
                         const std::string& path);

/// The first `per_class` samples of every class, or as many samples from all over the set when there are no classes.
std::vector<int64_t> sheet_samples(const Dataset& data, int64_t per_class);

}  // namespace netmend::dataset
