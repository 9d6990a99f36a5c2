// Which criteria are asked for: the list that a user types, checked against the table of criteria.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observers/coverage/table.h"

namespace netmend::adequacy {

using observers::CriterionRow;

inline std::span<const CriterionRow> criteria() { return observers::criterion_rows(); }
/// Their names with commas, for help and messages.
std::string criteria_names();
/// The row of a name that is in the table.
const CriterionRow& criterion_row(std::string_view name);

struct Wanted {
  std::string name;
  double parameter = 0;
};
/// `all` but what has to be asked for by name, or names with commas between them, each with a parameter if need be:
/// `NC:0.5,KMNC:100,IDC`. Rows may have a second name (LSA for LSC). Throws InputError with the nearest name and the
/// list.
std::vector<Wanted> parse_criteria(const std::string& text);

/// `6,8,10,12`, ascending and without doubles. Throws InputError.
std::vector<int64_t> parse_counts(const std::string& text, const std::string& flag);

}  // namespace netmend::adequacy
