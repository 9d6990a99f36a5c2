// The database in which trackio keeps the metrics of a project's runs (SQLite), as a record of the last run.
#pragma once

#include <string>

#include "records/record.h"

namespace netmend::records {

/// Whether the file begins as a database of SQLite does.
bool is_sqlite(const std::string& path);
/// Throws InputError when it holds no metrics of trackio, or none that is a loss.
Record read_trackio(const std::string& path);

}  // namespace netmend::records
