#include "stream/device_inputs.h"

#include "executor/runtime.h"

namespace netmend::stream {

std::optional<DeviceInputs::Entry> DeviceInputs::find(const dataset::Dataset& data, int64_t first,
                                                      int64_t count) const {
  std::lock_guard lock(mutex_);
  auto hit = entries_.find(first);
  if (data_.get() != &data || hit == entries_.end() || hit->second.batch.count() != count) return std::nullopt;
  return hit->second;
}

void DeviceInputs::keep(const std::shared_ptr<const dataset::Dataset>& data, int64_t first, Entry entry) {
  executor::finish_device_work();  // other threads read it by streams of their own
  int64_t bytes = 0;
  for (const at::Tensor& input : entry.inputs) bytes += int64_t(input.nbytes());
  std::lock_guard lock(mutex_);
  if (data_ != data) data_ = data, entries_.clear(), bytes_ = 0;
  if (bytes_ + bytes > executor::device_memory() / 2) return;
  bytes_ += bytes;
  entries_[first] = std::move(entry);
}

}  // namespace netmend::stream
