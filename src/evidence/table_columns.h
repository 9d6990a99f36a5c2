// The columns of a table as a person reads them, and which of their values are usual.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::evidence {

struct TableColumn {
  std::string name;
  bool number = false;               ///< all its values are numbers, but for those that are missing
  std::string typical;               ///< the median, or the most frequent word
  double low = 0, high = 0, sd = 0;  ///< of numbers: 5th and 95th percentile, standard deviation
  std::vector<std::string> common;   ///< of words: those in at least one row of twenty; empty where there is none
};

/// Of evenly spread rows; empty for data that is no table.
std::vector<TableColumn> table_columns(const dataset::Dataset& data);

/// Whether the network is given a column, as it is or encoded.
bool is_fed(const dataset::Info& info, const std::string& column);

nlohmann::ordered_json column_json(const TableColumn& column, bool fed);

}  // namespace netmend::evidence
