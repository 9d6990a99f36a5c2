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
constexpr double kSameLine = 2e-3;  ///< of what a unit of fed values is in the source

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

namespace {

using Sources = std::vector<census::SourceColumn>;

std::vector<Column> columns_by(const Part& part, const Sources& sources) {
  std::vector<Column> columns = group_columns(part.data, part.inputs);
  auto known = [&](const std::string& name) {
    return std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
  };
  const census::Form& form = part.census.form();
  if (form.values > 0 && form.keep_each == 1) {
    std::vector<size_t> rows(part.inputs.begin(), part.inputs.end());
    for (const census::SourceColumn& source : sources)
      if (!known(source.name))
        columns.push_back(source.is_category() ? category(source, part.census, rows)
                                               : numbers(source, part.census, rows));
  }
  for (size_t p = 0; p < form.properties.size(); ++p) {
    Column column;
    column.name = form.properties[p];
    column.property = true;
    for (int64_t input : part.inputs)
      column.numbers.push_back(part.census.properties[size_t(input) * form.properties.size() + p]);
    if (!known(column.name)) columns.push_back(std::move(column));
  }
  return columns;
}

/// Lines are read off a few rows each, so that those of two parts that were fed alike differ a little: enough to tell
/// values apart that are equal in the source.
void align(Sources& one, Sources& other) {
  for (census::SourceColumn& here : one) {
    auto there = std::find_if(other.begin(), other.end(), [&](const auto& column) { return column.name == here.name; });
    if (there == other.end() || here.is_category() || there->is_category()) continue;
    if (here.in_units != there->in_units) {
      for (census::SourceColumn* column : {&here, &*there}) column->in_units = false, column->line = {};
      continue;
    }
    const double factor = std::max(std::abs(here.line.factor), std::abs(there->line.factor));
    auto same = [&](double fed) { return std::abs(here.line.raw(fed) - there->line.raw(fed)) <= kSameLine * factor; };
    if (same(-1) && same(1)) here.line = there->line;
  }
}

}  // namespace

std::vector<Column> columns_of(const dataset::Dataset& data, const census::CensusState& census,
                               const std::vector<int64_t>& inputs) {
  return columns_by({data, census, inputs}, census.form().source);
}

std::pair<std::vector<Column>, std::vector<Column>> columns_of_both(const Part& one, const Part& other) {
  Sources here = one.census.form().source, there = other.census.form().source;
  align(here, there);
  return {columns_by(one, here), columns_by(other, there)};
}

}  // namespace netmend::slices
