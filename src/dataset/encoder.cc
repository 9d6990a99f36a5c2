#include "dataset/encoder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

constexpr size_t kMostCategories = 1000;
const char* const kMissing = "?";

}  // namespace

/// What is gathered about a column while rows go by.
struct Encoder::Fit {
  int64_t position = 0;
  bool number = true;      ///< so far every value was one
  bool many = false;       ///< too many different values to be categories
  std::string first_word;  ///< that is no number
  int64_t first_row = -1;
  std::set<std::string> words;
  int64_t numbers = 0, others = 0;  ///< values that are numbers, and others; counted while numbers may be the most
  int64_t count = 0;
  double mean = 0, squares = 0, least = INFINITY, most = -INFINITY;

  /// Nearly all values are numbers, and a few are something else.
  bool mixed() const { return others > 0 && others <= 10 + numbers / 20; }

  void add_number(double value) {
    if (!std::isfinite(value)) return;
    ++count;
    least = std::min(least, value), most = std::max(most, value);
    double before = value - mean;
    mean += before / double(count);
    squares += before * (value - mean);
  }
  void add_word(const std::string& word) {
    if (!many) words.insert(word);
    many = many || words.size() > kMostCategories;
  }
};

/// Columns of names, dates or remarks are no categories; all of them are named at once.
void Encoder::refuse_wordy(const Table& train, const std::vector<Fit>& fits) const {
  std::vector<std::string> wordy;
  std::string example;
  for (const Fit& fit : fits) {
    if (fit.number || !fit.many) continue;
    wordy.push_back(train.columns()[size_t(fit.position)]);
    if (example.empty() && fit.first_row >= 0)
      example = fmt::format(" (such as '{}' in {}, {})", fit.first_word, wordy.back(), train.where(fit.first_row));
  }
  if (wordy.empty()) return;
  throw InputError(fmt::format("{}: more than {} different categories in {} {}{}", train.name(), kMostCategories,
                               wordy.size() == 1 ? "column" : "the columns", join(wordy, ", "), example),
                   fmt::format("Leave out columns that are not categories with drop={}; if they are numbers, "
                               "missing=WORD says what stands for a missing one.",
                               join(wordy, ":")));
}

Encoder::Encoder(const Table& train, EncoderOptions options) : options_(std::move(options)) {
  std::vector<Fit> fits;
  for (const std::string& name : options_.columns) {
    Fit fit;
    fit.position = train.position(name);
    fit.number = std::find(options_.categories.begin(), options_.categories.end(), name) == options_.categories.end();
    fits.push_back(std::move(fit));
  }
  train.for_all([&](int64_t number, const Row& row) {
    for (Fit& fit : fits) {
      const std::string& word = row[size_t(fit.position)];
      const bool missing = is_missing(word);
      double value = 0;
      fit.add_word(missing ? kMissing : word);
      if (missing || !(fit.number || fit.mixed())) continue;
      const bool is_number = parse_double(word, value);
      ++(is_number ? fit.numbers : fit.others);
      if (fit.number && is_number) fit.add_number(value);
      if (fit.number && !is_number) fit.number = false, fit.first_word = word, fit.first_row = number;
    }
  });
  refuse_wordy(train, fits);
  for (const Fit& fit : fits)
    if (fit.mixed() && fit.numbers > 4 * fit.others)
      notes_.push_back(
          fmt::format("{}: {} of the values in the column {} {} no number (such as '{}' in {}): all of "
                      "them are read as categories; missing=WORD says what stands for a missing number",
                      train.name(), with_commas(fit.others), train.columns()[size_t(fit.position)],
                      fit.others == 1 ? "is" : "are", fit.first_word, train.where(fit.first_row)));
  int64_t numbers = 0;
  for (size_t i = 0; i < fits.size(); ++i) {
    Column column;
    column.name = options_.columns[i];
    finish(column, fits[i], numbers);
    columns_.push_back(std::move(column));
  }
  for (size_t given : {options_.mean.size(), options_.std.size()})
    if (given > 1 && int64_t(given) != numbers)
      fail("{}: the number of numeric columns is {}, but mean= or std= gives {} values", train.name(), numbers, given);
}

void Encoder::finish(Column& column, const Fit& fit, int64_t& numbers) {
  column.number = fit.number && fit.count > 0;
  column.begin = width_;
  if (!column.number) {
    for (const std::string& word : fit.words) column.categories.emplace(word, width_++);
    return;
  }
  auto pick = [&](const std::vector<double>& values, double otherwise) {
    return values.empty() ? otherwise : values[std::min(size_t(numbers), values.size() - 1)];
  };
  column.instead = fit.mean;
  if (options_.scaling == EncoderOptions::kGiven) {
    column.mean = pick(options_.mean, 0) / options_.scale, column.deviation = pick(options_.std, 1) / options_.scale;
  } else {
    const bool by_range = options_.scaling == EncoderOptions::kMinMax;
    const double spread =
        by_range ? fit.most - fit.least : std::sqrt(fit.squares / double(std::max<int64_t>(1, fit.count)));
    column.mean = by_range ? fit.least : fit.mean, column.deviation = spread > 0 ? spread : 1;
  }
  ++width_, ++numbers;
}

bool Encoder::is_missing(const std::string& word) const {
  return std::find(options_.missing.begin(), options_.missing.end(), word) != options_.missing.end();
}

std::vector<std::string> Encoder::names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) {
    if (column.number) names.push_back(column.name);
    for (const auto& [word, place] : column.categories) names.push_back(column.name + "=" + word);
  }
  return names;
}

std::vector<int64_t> Encoder::positions(const Table& table) const {
  std::vector<int64_t> positions;
  for (const Column& column : columns_) positions.push_back(table.position(column.name));
  return positions;
}

void Encoder::encode(const Row& row, const std::vector<int64_t>& positions, float* out) const {
  std::fill_n(out, width_, 0.f);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const std::string& word = row[size_t(positions[i])];
    const bool missing = is_missing(word);
    if (!column.number) {
      auto hit = column.categories.find(missing ? kMissing : word);
      if (hit != column.categories.end()) out[hit->second] = 1;
      continue;
    }
    double value = column.instead;
    if (!missing && !parse_double(word, value))
      fail("column '{}' holds '{}', where the training data has numbers", column.name, word);
    out[column.begin] = float((value - column.mean) / column.deviation);
  }
}

}  // namespace netmend::dataset
