#include <ATen/ATen.h>

#include "base/error.h"
#include "dataset/dataset.h"

namespace netmend::dataset {
namespace {

class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> samples)
      : whole_(std::move(whole)), samples_(std::move(samples)) {
    info_ = whole_->info();
    info_.size = int64_t(samples_.size());
    for (int64_t sample : samples_)
      check(sample >= 0 && sample < whole_->size(), "sample {} of {} in a subset", sample, whole_->size());
  }
  Batch read(std::span<const int64_t> samples) const override {
    std::vector<int64_t> inner;
    inner.reserve(samples.size());
    for (int64_t sample : samples) inner.push_back(at(sample));
    Batch batch = whole_->read(inner);
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }
  std::string id(int64_t sample) const override { return whole_->id(at(sample)); }
  std::vector<std::string> groups(int64_t sample) const override { return whole_->groups(at(sample)); }
  Display display(int64_t sample) const override { return whole_->display(at(sample)); }

 private:
  int64_t at(int64_t sample) const {
    check(sample >= 0 && sample < size(), "sample {} of {}", sample, size());
    return samples_[size_t(sample)];
  }
  std::shared_ptr<const Dataset> whole_;
  std::vector<int64_t> samples_;
};

}  // namespace

std::unique_ptr<Dataset> subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> samples) {
  return std::make_unique<Subset>(std::move(whole), std::move(samples));
}

}  // namespace netmend::dataset
