#include "inputs/made_dataset.h"

#include <ATen/ATen.h>

namespace netmend::inputs {

MadeDataset::MadeDataset(const dataset::Info& like, dataset::Batch batch) : batch_(std::move(batch)) {
  info_ = like;
  info_.size = batch_.inputs.at(0).size(0);
}

dataset::Batch MadeDataset::read(std::span<const int64_t> samples) const {
  at::Tensor index = at::tensor(at::ArrayRef<int64_t>(samples.data(), samples.size()), at::kLong);
  auto pick = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.index_select(0, index) : tensor; };
  dataset::Batch batch;
  for (const at::Tensor& input : batch_.inputs) batch.inputs.push_back(pick(input));
  for (const at::Tensor& mask : batch_.masks) batch.masks.push_back(pick(mask));
  batch.labels = pick(batch_.labels);
  batch.samples.assign(samples.begin(), samples.end());
  return batch;
}

}  // namespace netmend::inputs
