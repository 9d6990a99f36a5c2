#include "dataset/meta_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/table.h"

namespace netmend::dataset {
namespace {

/// `./cats/1.png` is `cats/1.png`.
std::string plain_id(std::string_view word) {
  word = trim(word);
  while (word.starts_with("./")) word.remove_prefix(2);
  return std::string(word);
}

/// Finds the row of a name. Keeps 16 bytes per row, whatever the length of the names.
class Rows {
 public:
  Rows(const Table& table, int64_t column) : table_(table), column_(column) {
    entries_.reserve(size_t(table.rows()));
    table.for_all([&](int64_t row, const Row& words) {
      entries_.push_back({std::hash<std::string>()(plain_id(words[size_t(column)])), row});
    });
    std::sort(entries_.begin(), entries_.end());
    for (size_t i = 1; i < entries_.size(); ++i)
      if (entries_[i].hash == entries_[i - 1].hash && id(entries_[i].row) == id(entries_[i - 1].row))
        throw InputError(fmt::format("{} names the sample '{}' twice: {} and {}", table.name(), id(entries_[i].row),
                                     table.where(entries_[i - 1].row), table.where(entries_[i].row)),
                         "Each sample may have only one row; remove the others.");
  }

  /// -1 when no row has this name.
  int64_t find(const std::string& name) const {
    Entry wanted{std::hash<std::string>()(name), 0};
    auto hit = std::lower_bound(entries_.begin(), entries_.end(), wanted);
    return hit != entries_.end() && hit->hash == wanted.hash ? hit->row : -1;
  }
  std::string id(int64_t row) const { return plain_id(table_.row(row)[size_t(column_)]); }

 private:
  struct Entry {
    size_t hash;
    int64_t row;
    auto operator<=>(const Entry&) const = default;
  };
  const Table& table_;
  int64_t column_;
  std::vector<Entry> entries_;
};

class MetaDataset : public Dataset {
 public:
  MetaDataset(std::shared_ptr<const Dataset> data, const MetaOptions& options)
      : data_(std::move(data)), table_(open_bytes(options.file), table_format(options.file, {})) {
    info_ = data_->info();
    info_.files.push_back(options.file);
    const int64_t named = table_.find("id");
    const int64_t id_column = !options.id.empty() ? table_.position(options.id) : std::max<int64_t>(named, 0);
    choose_groups(options, id_column);
    join(Rows(table_, id_column));
  }

  Batch read(std::span<const int64_t> samples) const override { return data_->read(samples); }
  std::string id(int64_t sample) const override { return data_->id(sample); }
  Display display(int64_t sample) const override { return data_->display(sample); }
  std::vector<std::string> groups(int64_t sample) const override {
    std::vector<std::string> values = data_->groups(sample);
    const int64_t at = rows_.at(size_t(sample));
    const Row row = at < 0 ? Row(table_.columns().size()) : table_.row(at);
    for (int64_t column : columns_) {
      const std::string& word = row[size_t(column)];
      values.push_back(word == "?" ? "" : word);
    }
    return values;
  }

 private:
  void choose_groups(const MetaOptions& options, int64_t id_column) {
    for (const std::string& group : options.groups) columns_.push_back(table_.position(group));
    for (int64_t c = 0; c < int64_t(table_.columns().size()) && options.groups.empty(); ++c)
      if (c != id_column) columns_.push_back(c);
    if (columns_.empty())
      throw InputError(fmt::format("{} has no columns besides the names of samples", table_.name()),
                       "Groups are further columns, as in id,camera,hour.");
    for (int64_t column : columns_) {
      const std::string& name = table_.columns()[size_t(column)];
      if (std::find(info_.groups.begin(), info_.groups.end(), name) != info_.groups.end())
        throw InputError(fmt::format("{} and {} both have a group '{}'", info_.spec, table_.name(), name),
                         "Take only the other columns of the table: meta_groups=a:b.");
      info_.groups.push_back(name);
    }
  }

  void join(const Rows& rows) {
    std::vector<int64_t> owner(size_t(table_.rows()), -1);
    int64_t missing = 0, first_missing = -1;
    rows_.reserve(size_t(info_.size));
    for (int64_t sample = 0; sample < info_.size; ++sample) {
      int64_t row = row_of(rows, sample, owner);
      rows_.push_back(row);
      if (row < 0 && missing++ == 0) first_missing = sample;
    }
    if (missing == info_.size && info_.size > 0)
      throw InputError(fmt::format("{} names none of the {} samples: it has '{}', the data has '{}'", table_.name(),
                                   with_commas(info_.size), table_.rows() ? rows.id(0) : "", data_->id(0)),
                       "The names must be equal; meta_id=COLUMN says which column holds them.");
    if (missing)
      info_.notes.push_back(fmt::format("{} has no row for {} of {} samples (the first is {}); their groups are empty",
                                        table_.name(), with_commas(missing), with_commas(info_.size),
                                        data_->id(first_missing)));
  }

  int64_t row_of(const Rows& rows, int64_t sample, std::vector<int64_t>& owner) const {
    const std::string id = data_->id(sample);
    int64_t row = rows.find(plain_id(id));
    const size_t slash = id.rfind('/');
    if (row >= 0 || slash == std::string::npos) return row;
    row = rows.find(id.substr(slash + 1));
    if (row < 0) return row;
    if (int64_t other = std::exchange(owner[size_t(row)], sample); other >= 0)
      throw InputError(fmt::format("'{}' in {} matches two samples, {} and {}", rows.id(row), table_.where(row),
                                   data_->id(other), id),
                       "Write the paths as the data has them instead of file names.");
    return row;
  }

  std::shared_ptr<const Dataset> data_;
  Table table_;
  std::vector<int64_t> columns_;  ///< of the groups, in the table
  std::vector<int64_t> rows_;     ///< one per sample; -1 where the table says nothing
};

}  // namespace

std::unique_ptr<Dataset> with_meta(std::shared_ptr<const Dataset> data, const MetaOptions& options) {
  return std::make_unique<MetaDataset>(std::move(data), options);
}

}  // namespace netmend::dataset
