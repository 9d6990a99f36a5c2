// Inputs of a data set on a GPU, as the network takes them: brought there once and kept while they fit, for passes that
// go over the same data again.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::stream {

class DeviceInputs {
 public:
  struct Entry {
    dataset::Batch batch;            ///< without its inputs
    std::vector<at::Tensor> inputs;  ///< of the network, on the device
  };
  /// The batch that begins with sample `first` and has so many inputs; nullopt when it is not here. Any thread.
  std::optional<Entry> find(const dataset::Dataset& data, int64_t first, int64_t count) const;
  /// Keeps it, unless that would take more than half of the GPU's memory. Another data set's inputs are given up.
  void keep(const std::shared_ptr<const dataset::Dataset>& data, int64_t first, Entry entry);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const dataset::Dataset> data_;
  std::map<int64_t, Entry> entries_;
  int64_t bytes_ = 0;
};

}  // namespace netmend::stream
