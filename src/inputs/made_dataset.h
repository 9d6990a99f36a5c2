// Inputs that were just made, as data for a pass.
#pragma once

#include <ATen/core/Tensor.h>

#include "dataset/dataset.h"

namespace netmend::inputs {

class MadeDataset : public dataset::Dataset {
 public:
  /// `like` says what the inputs are like; `batch` holds them as the network is fed.
  MadeDataset(const dataset::Info& like, dataset::Batch batch);
  dataset::Batch read(std::span<const int64_t> samples) const override;
  dataset::Display display(int64_t) const override { return {}; }

 private:
  dataset::Batch batch_;
};

}  // namespace netmend::inputs
