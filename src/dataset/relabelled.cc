#include "dataset/relabelled.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"

namespace netmend::dataset {
namespace {

class Relabelled : public Dataset {
 public:
  Relabelled(std::shared_ptr<const Dataset> data, std::vector<int64_t> labels, std::vector<std::string> classes = {})
      : data_(std::move(data)), labels_(std::move(labels)) {
    info_ = data_->info();
    if (!classes.empty()) info_.labels = LabelKind::kClass, info_.label_width = 1, info_.classes = std::move(classes);
    check(info_.labels == LabelKind::kClass && int64_t(labels_.size()) == info_.size, "a class for every sample");
  }
  Batch read(std::span<const int64_t> samples) const override {
    Batch batch = data_->read(samples);
    std::vector<int64_t> own;
    for (int64_t sample : samples) own.push_back(labels_[size_t(sample)]);
    batch.labels = at::tensor(own, at::kLong);
    return batch;
  }
  std::string id(int64_t sample) const override { return data_->id(sample); }
  std::vector<std::string> groups(int64_t sample) const override { return data_->groups(sample); }
  Display display(int64_t sample) const override { return data_->display(sample); }

 private:
  std::shared_ptr<const Dataset> data_;
  std::vector<int64_t> labels_;
};

}  // namespace

std::unique_ptr<Dataset> relabelled(std::shared_ptr<const Dataset> data, std::vector<int64_t> labels) {
  return std::make_unique<Relabelled>(std::move(data), std::move(labels));
}

std::unique_ptr<Dataset> labelled(std::shared_ptr<const Dataset> data, std::vector<int64_t> labels,
                                  std::vector<std::string> classes) {
  return std::make_unique<Relabelled>(std::move(data), std::move(labels), std::move(classes));
}

std::vector<int64_t> read_labels(const Dataset& data) {
  if (data.info().labels != LabelKind::kClass) fail("the labels of {} are not classes", data.info().spec);
  std::vector<int64_t> labels;
  constexpr int64_t kAtOnce = 256;
  for (int64_t first = 0; first < data.size(); first += kAtOnce) {
    std::vector<int64_t> samples;
    for (int64_t i = first; i < std::min(first + kAtOnce, data.size()); ++i) samples.push_back(i);
    at::Tensor own = data.read(samples).labels.to(at::kLong).contiguous();
    labels.insert(labels.end(), own.data_ptr<int64_t>(), own.data_ptr<int64_t>() + own.numel());
  }
  return labels;
}

}  // namespace netmend::dataset
