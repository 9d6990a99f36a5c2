// Small data sets that tests make up.
#pragma once

#include <ATen/ATen.h>

#include "dataset/dataset.h"

namespace netmend::training {

/// Tensors as a data set: x is inputs × shape, y int64 classes or float numbers.
class TensorData : public dataset::Dataset {
 public:
  TensorData(at::Tensor x, at::Tensor y, int64_t classes) : x_(std::move(x)), y_(std::move(y)) {
    info_.spec = "made up";
    info_.size = x_.size(0);
    info_.features = {{"x", x_.sizes().slice(1).vec(), x_.scalar_type(), false, {}, 0}};
    info_.labels = classes ? dataset::LabelKind::kClass : dataset::LabelKind::kNumber;
    info_.label_width = y_.dim() > 1 ? y_.size(1) : 1;
    for (int64_t c = 0; c < classes; ++c) info_.classes.push_back(std::to_string(c));
  }
  dataset::Batch read(std::span<const int64_t> samples) const override {
    at::Tensor rows = at::tensor(std::vector<int64_t>(samples.begin(), samples.end()), at::kLong);
    dataset::Batch batch;
    batch.inputs = {x_.index_select(0, rows)};
    batch.masks.resize(1);
    batch.labels = y_.index_select(0, rows);
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }
  dataset::Display display(int64_t) const override { return {}; }

 private:
  at::Tensor x_, y_;
};

/// Random inputs whose class a random linear rule decides, so that there is something to learn.
inline std::shared_ptr<TensorData> random_classes(int64_t count, std::vector<int64_t> shape, int64_t classes) {
  at::manual_seed(7);
  shape.insert(shape.begin(), count);
  at::Tensor x = at::randn(shape), flat = x.flatten(1);
  at::Tensor y = at::argmax(at::mm(flat, at::randn({flat.size(1), classes})), 1);
  return std::make_shared<TensorData>(x, y, classes);
}

}  // namespace netmend::training
