#include "studies/altered.h"

#include <ATen/ATen.h>

namespace netmend::studies {
namespace {

class Altered : public dataset::Dataset {
 public:
  Altered(std::shared_ptr<const dataset::Dataset> data, Alteration alteration)
      : data_(std::move(data)), how_(std::move(alteration)) {
    info_ = data_->info();
    if (how_.samples.empty())
      for (int64_t i = 0; i < data_->size(); ++i) how_.samples.push_back(i);
    info_.size = int64_t(how_.samples.size());
    if (how_.change) info_.spec = "altered";  // what the file holds is something else
    if (!how_.column.empty()) info_.groups.push_back(how_.column);
  }

  dataset::Batch read(std::span<const int64_t> rows) const override {
    std::vector<int64_t> own, others, order(rows.size());
    for (int64_t row : rows) (of_other(row) ? others : own).push_back(source(row));
    dataset::Batch batch = own.empty() ? how_.other->read(others) : data_->read(own);
    if (!own.empty() && !others.empty()) {
      dataset::Batch more = how_.other->read(others);
      int64_t a = 0, b = int64_t(own.size());
      for (size_t i = 0; i < rows.size(); ++i) order[i] = of_other(rows[i]) ? b++ : a++;
      at::Tensor index = at::tensor(order, at::kLong);
      for (size_t f = 0; f < batch.inputs.size(); ++f)
        batch.inputs[f] = at::cat({batch.inputs[f], more.inputs[f]}).index_select(0, index);
      for (size_t f = 0; f < batch.masks.size(); ++f)
        if (batch.masks[f].defined()) batch.masks[f] = at::cat({batch.masks[f], more.masks[f]}).index_select(0, index);
      if (batch.labels.defined()) batch.labels = at::cat({batch.labels, more.labels}).index_select(0, index);
    }
    batch.samples.assign(rows.begin(), rows.end());
    if (how_.change) {
      for (at::Tensor& input : batch.inputs) input = input.clone();
      if (batch.labels.defined()) batch.labels = batch.labels.clone();
      how_.change(batch, rows);
    }
    return batch;
  }
  std::string id(int64_t row) const override {
    return of_other(row) ? how_.other->id(source(row)) : data_->id(source(row));
  }
  std::vector<std::string> groups(int64_t row) const override {
    std::vector<std::string> own = of_other(row) ? how_.other->groups(source(row)) : data_->groups(source(row));
    if (!how_.column.empty()) own.push_back(how_.value(row));
    return own;
  }
  dataset::Display display(int64_t row) const override {
    return of_other(row) ? how_.other->display(source(row)) : data_->display(source(row));
  }

 private:
  bool of_other(int64_t row) const { return how_.samples[size_t(row)] >= data_->size(); }
  int64_t source(int64_t row) const { return how_.samples[size_t(row)] - (of_other(row) ? data_->size() : 0); }
  std::shared_ptr<const dataset::Dataset> data_;
  Alteration how_;
};

}  // namespace

std::shared_ptr<const dataset::Dataset> altered(std::shared_ptr<const dataset::Dataset> data, Alteration alteration) {
  return std::make_shared<Altered>(std::move(data), std::move(alteration));
}

}  // namespace netmend::studies
