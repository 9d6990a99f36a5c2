// Data in memory: tensors, labels and groups as they are given. For tests and for programs that have their data
// already.
#pragma once

#include <ATen/ATen.h>

#include "dataset/dataset.h"

namespace netmend::dataset {

class MemoryDataset : public Dataset {
 public:
  /// `x`: inputs first. `labels`: int64 for classes, float for numbers, or undefined.
  MemoryDataset(Feature feature, at::Tensor x, at::Tensor labels, std::vector<std::string> classes = {},
                std::string spec = "memory") {
    info_.spec = std::move(spec);
    info_.size = x.size(0);
    info_.features = {std::move(feature)};
    if (labels.defined()) info_.labels = labels.scalar_type() == at::kLong ? LabelKind::kClass : LabelKind::kNumber;
    info_.classes = std::move(classes);
    x_ = std::move(x), labels_ = std::move(labels);
  }
  void set_groups(std::vector<std::string> names, std::vector<std::vector<std::string>> rows) {
    info_.groups = std::move(names), groups_ = std::move(rows);
  }
  void set_mask(at::Tensor mask) { mask_ = std::move(mask); }
  void set_rows(std::vector<std::string> rows) { rows_ = std::move(rows); }
  Info& info_to_change() { return info_; }

  Batch read(std::span<const int64_t> samples) const override {
    at::Tensor which = at::tensor(at::ArrayRef<int64_t>(samples.data(), samples.size()), at::kLong);
    Batch batch;
    batch.inputs = {x_.index_select(0, which)};
    batch.masks = {mask_.defined() ? mask_.index_select(0, which) : at::Tensor()};
    if (labels_.defined()) batch.labels = labels_.index_select(0, which);
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }
  std::vector<std::string> groups(int64_t sample) const override {
    return groups_.empty() ? std::vector<std::string>{} : groups_[size_t(sample)];
  }
  Display display(int64_t sample) const override {
    Display shown;
    if (!rows_.empty()) shown.kind = Display::kText, shown.text = rows_[size_t(sample)];
    return shown;
  }

 private:
  at::Tensor x_, labels_, mask_;
  std::vector<std::vector<std::string>> groups_;
  std::vector<std::string> rows_;
};

inline Feature picture_feature(int64_t side, int64_t channels = 1) {
  Feature feature;
  feature.name = "x", feature.shape = {channels, side, side}, feature.image = true;
  return feature;
}
inline Feature table_feature(std::vector<std::string> columns) {
  Feature feature;
  feature.name = "x", feature.shape = {int64_t(columns.size())}, feature.columns = std::move(columns);
  return feature;
}
inline Feature text_feature(int64_t length) {
  Feature feature;
  feature.name = "ids", feature.shape = {length}, feature.type = at::kLong, feature.pad = 0, feature.unknown = 1;
  return feature;
}

}  // namespace netmend::dataset
