// Training reads every input many times in random order, which compressed files and decoded pictures are slow at: what
// fits is read once, as the network wants it, and kept.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <span>
#include <vector>

#include "dataset/dataset.h"
#include "stream/feed.h"

namespace netmend::training {

struct Rows {
  std::vector<at::Tensor> inputs;  ///< of the network, in order
  at::Tensor labels;
};

class Samples {
 public:
  /// Keeps the data in memory, on the device, when it takes at most `limit` bytes. Throws Interrupted on Ctrl-C.
  Samples(std::shared_ptr<const dataset::Dataset> data, stream::Feed feed, int jobs, int64_t limit,
          at::Device device = at::kCPU);

  /// On the device. Any thread may call. Throws InputError.
  Rows rows(std::span<const int64_t> samples) const;
  /// The same of kept data, by numbers that lie on the device, without waiting for it.
  Rows rows(const at::Tensor& samples) const;
  int64_t size() const { return data_->size(); }
  const dataset::Info& info() const { return data_->info(); }
  at::Device device() const { return device_; }
  bool kept() const { return kept_.labels.defined(); }

 private:
  Rows read(std::span<const int64_t> samples) const;
  std::shared_ptr<const dataset::Dataset> data_;
  stream::Feed feed_;
  at::Device device_;
  Rows kept_;
};

/// A share of the memory budget.
int64_t samples_limit();

}  // namespace netmend::training
