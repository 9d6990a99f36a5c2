// Columns that lie beside the data in a table of their own: joined to the samples by their names, given out as groups.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::dataset {

struct MetaOptions {
  std::string file;                 ///< a table with a header
  std::string id;                   ///< its column of sample names; "": the column `id`, else the first one
  std::vector<std::string> groups;  ///< columns to give out; empty: all but the names
};

/// `data` with the columns of a table as further groups. A row belongs to the sample whose id it names; for ids that
/// are paths the file name alone will do when it is the only one. Samples that the table does not name have empty
/// groups, and Info::notes says how many. Throws InputError: an id that two rows have (with both lines), a file name
/// that fits two samples, a table that names no sample at all (with a name of each).
std::unique_ptr<Dataset> with_meta(std::shared_ptr<const Dataset> data, const MetaOptions& options);

}  // namespace netmend::dataset
