#include "dataset/csv_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataset/labels.h"

namespace netmend::dataset {
namespace {

constexpr size_t kMostClasses = 10000;

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

[[noreturn]] void bad_label(const Table& table, int64_t row, const std::string& column, const std::string& word,
                            const char* expected, const char* hint = "") {
  throw InputError(fmt::format("{} (sample {}): the label '{}' in column {} is not {}", table.where(row), row, word,
                               column, expected),
                   hint);
}

}  // namespace

LabelColumn::LabelColumn(const Table& train, const std::string& column,
                         const std::map<std::string, std::string>& options, std::string strip)
    : column_(column), strip_(std::move(strip)) {
  const size_t position = size_t(train.position(column));
  const std::vector<std::string> kinds = {"class", "number"};
  if (auto given = options.find("kind"); given != options.end()) {
    if (!contains(kinds, given->second))
      fail("kind={} is unknown{}: choose from {}", given->second, did_you_mean(given->second, kinds),
           join(kinds, ", "));
    if (given->second == "number") kind_ = LabelKind::kNumber;
  }
  if (kind_ == LabelKind::kNumber) return;
  std::set<std::string> names;
  train.for_all([&](int64_t row, const Row& words) {
    std::string word = stripped(words[position]);
    double value = 0;
    if (word.empty() || word == "?") bad_label(train, row, column_, word, "a class");
    if (parse_double(word, value) && value != std::floor(value))
      bad_label(train, row, column_, word, "a class", "Labels that are quantities need kind=number.");
    names.insert(std::move(word));
    if (names.size() > kMostClasses)
      throw InputError(
          fmt::format("{}: column {} holds more than {} different labels", train.name(), column_, kMostClasses),
          "Labels that are quantities need kind=number.");
  });
  classes_ = options.count("classes") ? class_names(options, 0) : sorted_classes(names);
  for (const std::string& name : classes_) numbers_.emplace(name, int64_t(numbers_.size()));
}

std::string LabelColumn::stripped(const std::string& word) const {
  if (strip_.empty() || !word.ends_with(strip_)) return word;
  return word.substr(0, word.size() - strip_.size());
}

double LabelColumn::value(const Table& table, int64_t row, const std::string& word) const {
  double number = 0;
  if (kind_ == LabelKind::kNumber) {
    if (!parse_double(word, number)) bad_label(table, row, column_, word, "a number");
    return number;
  }
  auto hit = numbers_.find(stripped(word));
  if (hit == numbers_.end())
    bad_label(table, row, column_, word, ("one of the classes " + join(classes_, ", ").substr(0, 300)).c_str());
  return double(hit->second);
}

CsvDataset::CsvDataset(Setup setup) : table_(std::move(setup.table)) {
  const Table& train = setup.train ? *setup.train : table_;
  for (const auto& list : {setup.drop, setup.groups, setup.encoder.columns, setup.encoder.categories})
    for (const std::string& column : list) table_.position(column);
  if (setup.encoder.columns.empty())
    for (const std::string& column : train.columns())
      if (column != setup.label && column != setup.id && !contains(setup.drop, column) &&
          !contains(setup.groups, column))
        setup.encoder.columns.push_back(column);
  if (setup.encoder.columns.empty()) fail("{} has no columns left to feed to the model", table_.name());
  encoder_.emplace(train, setup.encoder);
  positions_ = encoder_->positions(table_);
  for (const std::string& column : setup.groups) group_positions_.push_back(table_.position(column));
  if (!setup.id.empty()) id_position_ = table_.position(setup.id);
  info_.size = table_.rows();
  Feature feature{"x", {encoder_->width()}};
  feature.columns = encoder_->names();
  info_.features = {feature};
  info_.groups = setup.groups;
  info_.files = setup.files;
  info_.preprocess = parse_preprocess(setup.options);
  missing_ = setup.encoder.missing;
  info_.notes = encoder_->notes();
  note_missing_groups();
  if (setup.label.empty()) return;
  label_position_ = table_.position(setup.label);
  label_.emplace(train, setup.label, setup.options, setup.strip);
  info_.labels = label_->kind();
  info_.classes = label_->classes();
  check_labels();
}

/// A group that nobody wrote down is no group: it is told once, and given out as an empty word.
void CsvDataset::note_missing_groups() {
  if (group_positions_.empty()) return;
  std::vector<int64_t> missing(group_positions_.size());
  table_.for_all([&](int64_t, const Row& row) {
    for (size_t g = 0; g < missing.size(); ++g) missing[g] += contains(missing_, row[size_t(group_positions_[g])]);
  });
  for (size_t g = 0; g < missing.size(); ++g)
    if (missing[g])
      info_.notes.push_back(fmt::format("{}: rows without a value in the group column {}: {} of {}", table_.name(),
                                        info_.groups[g], with_commas(missing[g]), with_commas(table_.rows())));
}

/// Labels that cannot be used are reported before a pass starts.
void CsvDataset::check_labels() const {
  table_.for_all([&](int64_t row, const Row& words) { label_->value(table_, row, words[size_t(label_position_)]); });
}

Batch CsvDataset::read(std::span<const int64_t> samples) const {
  const int64_t count = int64_t(samples.size());
  Batch batch;
  at::Tensor x = at::empty({count, encoder_->width()}, at::kFloat);
  if (label_) batch.labels = at::empty({count}, label_->kind() == LabelKind::kNumber ? at::kFloat : at::kLong);
  table_.read(samples, [&](int64_t position, const Row& row) {
    const int64_t sample = samples[size_t(position)];
    try {
      encoder_->encode(row, positions_, x.data_ptr<float>() + position * encoder_->width());
    } catch (const InputError& error) {
      throw InputError(fmt::format("{} (sample {}): {}", table_.where(sample), sample, error.what()), error.hint());
    }
    if (!label_) return;
    double value = label_->value(table_, sample, row[size_t(label_position_)]);
    if (label_->kind() == LabelKind::kNumber)
      batch.labels.data_ptr<float>()[position] = float(value);
    else
      batch.labels.data_ptr<int64_t>()[position] = int64_t(value);
  });
  batch.inputs = {x};
  batch.masks.resize(1);
  batch.samples.assign(samples.begin(), samples.end());
  return batch;
}

std::string CsvDataset::id(int64_t sample) const {
  return id_position_ < 0 ? std::to_string(sample) : table_.row(sample)[size_t(id_position_)];
}

std::vector<std::string> CsvDataset::groups(int64_t sample) const {
  std::vector<std::string> values;
  if (group_positions_.empty()) return values;
  Row row = table_.row(sample);
  for (int64_t position : group_positions_) {
    const std::string& word = row[size_t(position)];
    values.push_back(contains(missing_, word) ? "" : word);
  }
  return values;
}

Display CsvDataset::display(int64_t sample) const {
  Display display{Display::kText, 0, 0, 0, {}, ""};
  Row row = table_.row(sample);
  for (size_t i = 0; i < row.size(); ++i) {
    display.text += fmt::format("{}{}={}", i ? " " : "", table_.columns()[i], row[i]);
    if (int64_t(i) != label_position_) display.values.emplace_back(table_.columns()[i], row[i]);
  }
  return display;
}

}  // namespace netmend::dataset
