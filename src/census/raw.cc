#include "census/raw.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "stream/pass.h"

namespace netmend::census {
namespace {

constexpr int64_t kLooked = 64;

/// The word behind ` name=` in a row that is shown as text; "" when it is not there.
std::string word_of(const std::string& row, const std::string& name) {
  const std::string key = name + "=";
  size_t at = row.rfind(key, 0) == 0 ? 0 : row.find(" " + key);
  if (at == std::string::npos) return "";
  at += key.size() + (at == 0 && row.rfind(key, 0) == 0 ? 0 : 1);
  return row.substr(at, row.find(' ', at) - at);
}

/// The line through what was fed and what rows show; all rows must lie on it.
bool find_line(const std::vector<std::pair<double, double>>& pairs, Line& line) {
  if (pairs.size() < 3) return false;
  auto [least, most] = std::minmax_element(pairs.begin(), pairs.end());
  if (most->first - least->first < 1e-6) return false;
  line.factor = (most->second - least->second) / (most->first - least->first);
  line.offset = least->second - line.factor * least->first;
  const double span = std::abs(most->second - least->second);
  return std::all_of(pairs.begin(), pairs.end(),
                     [&](const auto& pair) { return std::abs(line.raw(pair.first) - pair.second) <= 1e-3 * span; });
}

/// `sex` of `sex=Female`; "" for a number.
std::string source_of(const std::string& column) {
  size_t equals = column.find('=');
  return equals == std::string::npos ? "" : column.substr(0, equals);
}

bool only_zero_or_one(const at::Tensor& values) { return values.eq(0).logical_or(values.eq(1)).all().item<bool>(); }

}  // namespace

std::vector<Line> undo_preprocessing(const dataset::Info& info, const dataset::Feature& feature) {
  const dataset::Preprocess& done = info.preprocess;
  if (feature.type != at::kFloat || !feature.columns.empty()) return {Line{}};
  const double scale = done.scale.value_or(1);
  const size_t count = std::max<size_t>({1, done.mean.size(), done.std.size()});
  std::vector<Line> lines;
  for (size_t c = 0; c < count; ++c) {
    auto pick = [&](const std::vector<double>& values, double otherwise) {
      return values.empty() ? otherwise : values[std::min(c, values.size() - 1)];
    };
    lines.push_back({pick(done.std, 1) / scale, pick(done.mean, 0) / scale});
  }
  return lines;
}

std::vector<SourceColumn> source_columns(const dataset::Dataset& data, size_t feature) {
  const dataset::Feature& about = data.info().features.at(feature);
  int64_t width = 1;
  for (int64_t size : about.shape) width *= std::max<int64_t>(size, 1);
  std::vector<int64_t> looked = stream::spread(data.size(), std::min(kLooked, data.size()));
  at::Tensor fed = data.read(looked).inputs[feature].to(at::kDouble).reshape({int64_t(looked.size()), -1});
  std::vector<std::string> rows;
  for (int64_t sample : looked)
    if (dataset::Display shown = data.display(sample); shown.kind == dataset::Display::kText)
      rows.push_back(shown.text);
  const bool named = int64_t(about.columns.size()) == width, shown = named && rows.size() == looked.size();
  std::vector<SourceColumn> columns;
  std::map<std::string, size_t> categories;
  const std::vector<Line> undo = undo_preprocessing(data.info(), about);
  for (int64_t place = 0; place < width; ++place) {
    const std::string name = named ? about.columns[size_t(place)] : fmt::format("value {}", place);
    const std::string source = named ? source_of(name) : "";
    if (!source.empty() && only_zero_or_one(fed.select(1, place))) {
      auto [known, added] = categories.emplace(source, columns.size());
      if (added) columns.push_back({source, {}, {}, {}, true});
      columns[known->second].places.push_back(place);
      columns[known->second].words.push_back(name.substr(source.size() + 1));
      continue;
    }
    SourceColumn column{name, {place}, {}, {}, false};
    std::vector<std::pair<double, double>> pairs;
    for (size_t i = 0; shown && i < rows.size(); ++i)
      if (double value = 0; parse_double(word_of(rows[i], name), value))
        pairs.emplace_back(fed[int64_t(i)][place].item<double>(), value);
    column.in_units = !named || find_line(pairs, column.line);
    if (!column.in_units) column.line = {};
    if (!named) column.line = undo[std::min(size_t(place), undo.size() - 1)];
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace netmend::census
