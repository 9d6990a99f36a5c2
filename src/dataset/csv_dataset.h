// Rows of a table as inputs: numbers standardised, words as one column per category, a column of labels, columns kept
// aside.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/encoder.h"
#include "dataset/table.h"

namespace netmend::dataset {

/// What a label column says: names that stand for classes, or numbers.
class LabelColumn {
 public:
  /// Looks through the training labels; classes are sorted, as numbers when all are. `strip` is cut from the end of a
  /// label.
  LabelColumn(const Table& train, const std::string& column, const std::map<std::string, std::string>& options,
              std::string strip = "");
  LabelKind kind() const { return kind_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::string& name() const { return column_; }
  /// Class number, or the number itself. Throws InputError that names row and table.
  double value(const Table& table, int64_t row, const std::string& word) const;

 private:
  std::string stripped(const std::string& word) const;
  std::string column_, strip_;
  LabelKind kind_ = LabelKind::kClass;
  std::vector<std::string> classes_;
  std::map<std::string, int64_t> numbers_;
};

class CsvDataset : public Dataset {
 public:
  struct Setup {
    Table table;
    const Table* train = nullptr;  ///< what everything is fitted on; null: `table` itself
    EncoderOptions encoder;        ///< without columns: all that are neither label nor kept aside nor dropped
    std::vector<std::string> drop, groups;
    std::string label, id, strip;
    std::map<std::string, std::string> options;
    std::vector<std::string> files;
  };
  explicit CsvDataset(Setup setup);

  Batch read(std::span<const int64_t> samples) const override;
  std::string id(int64_t sample) const override;
  std::vector<std::string> groups(int64_t sample) const override;
  Display display(int64_t sample) const override;

 private:
  void check_labels() const;
  void note_missing_groups();
  Table table_;
  std::optional<Encoder> encoder_;
  std::vector<int64_t> positions_, group_positions_;
  std::optional<LabelColumn> label_;
  std::vector<std::string> missing_;  ///< words that stand for nothing
  int64_t label_position_ = -1, id_position_ = -1;
};

}  // namespace netmend::dataset
