#include "slices/columns.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "census/census.h"

namespace netmend::slices {
namespace {

constexpr size_t kMostWords = 1000, kFewNumbers = 12;

Column column_of_words(std::string name, const std::vector<std::string>& values) {
  Column column;
  column.name = std::move(name);
  std::set<std::string> different(values.begin(), values.end());
  different.erase("");
  column.words.assign(different.begin(), different.end());
  for (const std::string& value : values) {
    auto at = std::lower_bound(column.words.begin(), column.words.end(), value);
    column.codes.push_back(value.empty() ? -1 : int32_t(at - column.words.begin()));
  }
  return column;
}

/// Words that are numbers, and too many of them to be names.
bool as_numbers(const Column& words, Column& out) {
  if (words.words.size() <= kFewNumbers) return false;
  std::vector<double> values;
  for (const std::string& word : words.words)
    if (double value = 0; parse_double(word, value) && std::isfinite(value)) values.push_back(value);
  if (values.size() != words.words.size()) return false;
  out.name = words.name;
  for (int32_t code : words.codes) out.numbers.push_back(code < 0 ? NAN : float(values[size_t(code)]));
  return true;
}

Column category(const census::SourceColumn& source, const census::CensusState& census,
                const std::vector<size_t>& rows) {
  const auto width = size_t(census.form().values);
  Column column;
  column.name = source.name;
  column.words = source.words;
  for (size_t row : rows) {
    int32_t code = -1;
    for (size_t w = 0; w < source.places.size(); ++w)
      if (census.values[row * width + size_t(source.places[w])] > 0.5f) code = int32_t(w);
    column.codes.push_back(code);
  }
  return column;
}

Column numbers(const census::SourceColumn& source, const census::CensusState& census, const std::vector<size_t>& rows) {
  const auto width = size_t(census.form().values);
  Column column;
  column.name = source.in_units ? source.name : source.name + " (as fed)";
  for (size_t row : rows)
    column.numbers.push_back(float(source.line.raw(census.values[row * width + size_t(source.places[0])])));
  return column;
}

}  // namespace

std::vector<Column> group_columns(const dataset::Dataset& data, const std::vector<int64_t>& inputs) {
  const std::vector<std::string>& names = data.info().groups;
  std::vector<std::vector<std::string>> values(names.size());
  if (!names.empty())
    for (int64_t input : inputs) {
      std::vector<std::string> row = data.groups(input);
      row.resize(names.size());
      for (size_t g = 0; g < names.size(); ++g) values[g].push_back(std::move(row[g]));
    }
  std::vector<Column> columns;
  for (size_t g = 0; g < names.size(); ++g) {
    Column words = column_of_words(names[g], values[g]), out;
    if (!as_numbers(words, out)) out = std::move(words);
    if (out.is_words() && out.words.size() > kMostWords) continue;  // names of single inputs
    out.aside = true;
    columns.push_back(std::move(out));
  }
  return columns;
}

std::vector<Column> columns_of(const dataset::Dataset& data, const census::CensusState& census,
                               const std::vector<int64_t>& inputs) {
  std::vector<Column> columns = group_columns(data, inputs);
  auto known = [&](const std::string& name) {
    return std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
  };
  const census::Form& form = census.form();
  if (form.values > 0 && form.keep_each == 1) {
    std::vector<size_t> rows(inputs.begin(), inputs.end());
    for (const census::SourceColumn& source : form.source)
      if (!known(source.name))
        columns.push_back(source.is_category() ? category(source, census, rows) : numbers(source, census, rows));
  }
  for (size_t p = 0; p < form.properties.size(); ++p) {
    Column column;
    column.name = form.properties[p];
    column.property = true;
    for (int64_t input : inputs)
      column.numbers.push_back(census.properties[size_t(input) * form.properties.size() + p]);
    if (!known(column.name)) columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace netmend::slices
