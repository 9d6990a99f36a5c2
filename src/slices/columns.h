// What rules may speak of: columns kept aside, columns of a table in their own units, properties of inputs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace netmend::census {
struct CensusState;
}
namespace netmend::dataset {
class Dataset;
}

namespace netmend::slices {

/// One value per input: a number, or a word.
struct Column {
  std::string name;
  std::vector<float> numbers;      ///< NaN where missing; empty for words
  std::vector<int32_t> codes;      ///< of `words`; -1 where missing; empty for numbers
  std::vector<std::string> words;  ///< sorted
  bool aside = false;              ///< a group that the data keeps aside
  bool property = false;           ///< of the input as such, such as brightness: nobody wrote it down
  bool is_words() const { return !codes.empty() || numbers.empty(); }
};

/// Columns of these inputs (positions in the census, which is of `data`): those where the census kept values, when it
/// did not keep all. A group column whose values are many numbers is one of numbers.
std::vector<Column> columns_of(const dataset::Dataset& data, const census::CensusState& census,
                               const std::vector<int64_t>& inputs);
/// The same of two parts, so that their values can be compared: one line leads to the units of a column where both
/// parts were fed alike, and where one of them shows no units, both are as they were fed.
struct Part {
  const dataset::Dataset& data;
  const census::CensusState& census;
  const std::vector<int64_t>& inputs;
};
std::pair<std::vector<Column>, std::vector<Column>> columns_of_both(const Part& one, const Part& other);
/// The same for groups alone, which need no census.
std::vector<Column> group_columns(const dataset::Dataset& data, const std::vector<int64_t>& inputs);

}  // namespace netmend::slices
