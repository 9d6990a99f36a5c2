// A CSV with a row per epoch, as Keras' CSVLogger and Lightning's CSVLogger write it, as a record.
#pragma once

#include <string>

#include "records/record.h"

namespace netmend::records {

/// Throws InputError when no column is a loss.
Record read_csv_epochs(const std::string& path);

}  // namespace netmend::records
