#include "evidence/table_columns.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "stream/pass.h"

namespace netmend::evidence {
namespace {

constexpr int64_t kLooked = 2000;
constexpr double kCommon = 0.05;

bool is_missing(const std::string& word) { return word.empty() || word == "?"; }

void describe_numbers(TableColumn& column, std::vector<std::pair<double, std::string>>& values) {
  std::sort(values.begin(), values.end());
  auto at = [&](double share) -> const auto& { return values[size_t(share * double(values.size() - 1))]; };
  column.typical = at(0.5).second, column.low = at(kCommon).first, column.high = at(1 - kCommon).first;
  double sum = 0, squares = 0;
  for (const auto& [value, word] : values) sum += value;
  const double mean = sum / double(values.size());
  for (const auto& [value, word] : values) squares += (value - mean) * (value - mean);
  column.sd = std::sqrt(squares / double(values.size()));
}

void describe_words(TableColumn& column, const std::vector<std::string>& words) {
  std::map<std::string, int64_t> counts;
  for (const std::string& word : words) ++counts[word];
  int64_t most = 0;
  for (const auto& [word, count] : counts) {
    if (count > most) column.typical = word, most = count;
    if (double(count) >= kCommon * double(words.size())) column.common.push_back(word);
  }
}

}  // namespace

std::vector<TableColumn> table_columns(const dataset::Dataset& data) {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> words;
  for (int64_t sample : stream::spread(data.size(), std::min(kLooked, data.size()))) {
    const auto values = data.display(sample).values;
    for (size_t c = columns.size(); c < values.size(); ++c) {
      columns.emplace_back().name = values[c].first;
      words.emplace_back();
    }
    for (size_t c = 0; c < values.size(); ++c) words[c].push_back(values[c].second);
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<std::pair<double, std::string>> numbers;
    bool others = false;
    for (const std::string& word : words[c]) {
      double value = 0;
      if (parse_double(word, value) && std::isfinite(value))
        numbers.emplace_back(value, word);
      else
        others = others || !is_missing(word);
    }
    columns[c].number = !others && !numbers.empty();
    if (columns[c].number)
      describe_numbers(columns[c], numbers);
    else
      describe_words(columns[c], words[c]);
  }
  return columns;
}

bool is_fed(const dataset::Info& info, const std::string& column) {
  // Columns of an array without names are numbered, and all of them are fed.
  for (const dataset::Feature& feature : info.features)
    if (feature.columns.empty() && feature.shape.size() == 1 && column.rfind("value ", 0) == 0) return true;
  for (const dataset::Feature& feature : info.features)
    for (const std::string& name : feature.columns)
      if (name == column || name.rfind(column + "=", 0) == 0) return true;
  return false;
}

nlohmann::ordered_json column_json(const TableColumn& column, bool fed) {
  nlohmann::ordered_json json = {{"name", column.name}, {"input", fed}, {"typical", column.typical}};
  if (column.number)
    json["numbers"] = {{"low", column.low}, {"high", column.high}, {"sd", column.sd}};
  else
    json["common"] = column.common;
  return json;
}

}  // namespace netmend::evidence
