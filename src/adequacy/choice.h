// Which criteria are asked for: one table of them, and the list that a user types.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netmend::adequacy {

struct CriterionRow {
  std::string_view name;       ///< as the literature has it
  std::string_view asks;       ///< what it wants covered, in plain words
  std::string_view parameter;  ///< that may follow the name, or ""
  double usual = 0;
  bool needs_training = false;
};
std::span<const CriterionRow> criteria();
/// Their names with commas, for help and messages.
std::string criteria_names();
/// The row of a name that is in the table.
const CriterionRow& criterion_row(std::string_view name);

struct Wanted {
  std::string name;
  double parameter = 0;
};
/// `all`, or names with commas between them, each with a parameter if need be: `NC:0.5,KMNC:100,IDC`. LSA, DSA and MDSA
/// stand for LSC, DSC and MDSC. Throws InputError with the nearest name and the list.
std::vector<Wanted> parse_criteria(const std::string& text);

/// `6,8,10,12`, ascending and without doubles. Throws InputError.
std::vector<int64_t> parse_counts(const std::string& text, const std::string& flag);

}  // namespace netmend::adequacy
