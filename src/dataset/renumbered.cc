// The classes of a data set in another order: that of the model's outputs.
#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "dataset/dataset.h"

namespace netmend::dataset {
namespace {

class Renumbered : public Dataset {
 public:
  Renumbered(std::shared_ptr<const Dataset> data, const std::vector<std::string>& names) : data_(std::move(data)) {
    info_ = data_->info();
    check(info_.labels == LabelKind::kClass && names.size() == info_.classes.size(), "only classes have an order");
    for (const std::string& name : info_.classes) {
      auto place = std::find(names.begin(), names.end(), name);
      check(place != names.end(), "class {} has no place in the other order", name);
      numbers_.push_back(place - names.begin());
    }
    info_.classes = names;
  }
  Batch read(std::span<const int64_t> samples) const override {
    Batch batch = data_->read(samples);
    batch.labels = at::tensor(numbers_, at::kLong).index_select(0, batch.labels);
    return batch;
  }
  std::string id(int64_t sample) const override { return data_->id(sample); }
  std::vector<std::string> groups(int64_t sample) const override { return data_->groups(sample); }
  Display display(int64_t sample) const override { return data_->display(sample); }

 private:
  std::shared_ptr<const Dataset> data_;
  std::vector<int64_t> numbers_;
};

}  // namespace

std::unique_ptr<Dataset> renumbered(std::shared_ptr<const Dataset> data, const std::vector<std::string>& names) {
  return std::make_unique<Renumbered>(std::move(data), names);
}

}  // namespace netmend::dataset
