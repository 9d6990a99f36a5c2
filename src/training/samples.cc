#include "training/samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/pool.h"
#include "executor/runtime.h"

namespace netmend::training {
namespace {

constexpr int64_t kChunk = 512;

at::Tensor room_for(const at::Tensor& one, int64_t size) {
  std::vector<int64_t> shape = one.sizes().vec();
  shape[0] = size;
  return at::empty(shape, one.options());
}

int64_t row_bytes(const at::Tensor& tensor) { return tensor.size(0) ? int64_t(tensor.nbytes()) / tensor.size(0) : 0; }

at::Tensor gathered(const at::Tensor& all, std::span<const int64_t> samples) {
  at::Tensor out = room_for(all, int64_t(samples.size()));
  const char* from = static_cast<const char*>(all.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  const size_t bytes = size_t(row_bytes(all));
  for (size_t i = 0; i < samples.size(); ++i) std::memcpy(to + i * bytes, from + size_t(samples[i]) * bytes, bytes);
  return out;
}

bool fixed_sizes(const dataset::Info& info) {
  for (const dataset::Feature& feature : info.features)
    if (std::find(feature.shape.begin(), feature.shape.end(), -1) != feature.shape.end()) return false;
  return true;
}

}  // namespace

int64_t samples_limit() { return std::min(executor::memory_budget() / 4, int64_t(4) << 30); }

Samples::Samples(std::shared_ptr<const dataset::Dataset> data, stream::Feed feed, int jobs, int64_t limit,
                 at::Device device)
    : data_(std::move(data)), feed_(std::move(feed)), device_(device) {
  if (data_->size() == 0 || !fixed_sizes(data_->info())) return;
  const int64_t first = 0;
  Rows one = read(std::span(&first, 1));
  int64_t bytes = row_bytes(one.labels);
  for (const at::Tensor& input : one.inputs) bytes += row_bytes(input);
  if (bytes > limit / data_->size()) return;
  for (const at::Tensor& input : one.inputs) kept_.inputs.push_back(room_for(input, data_->size()));
  at::Tensor labels = room_for(one.labels, data_->size());
  in_order((data_->size() + kChunk - 1) / kChunk, jobs, [](int) { executor::enter_worker(); },
           [&](int64_t chunk, int) {
             std::vector<int64_t> samples(size_t(std::min(kChunk, data_->size() - chunk * kChunk)));
             std::iota(samples.begin(), samples.end(), chunk * kChunk);
             Rows rows = read(samples);
             int64_t count = int64_t(samples.size());
             for (size_t i = 0; i < rows.inputs.size(); ++i)
               kept_.inputs[i].narrow(0, chunk * kChunk, count).copy_(rows.inputs[i]);
             labels.narrow(0, chunk * kChunk, count).copy_(rows.labels);
           },
           [](int64_t) {});
  for (at::Tensor& input : kept_.inputs) input = input.to(device_);
  kept_.labels = labels.to(device_);
}

Rows Samples::read(std::span<const int64_t> samples) const {
  dataset::Batch batch = data_->read(samples);
  return {feed_.inputs(batch), batch.labels};
}

Rows Samples::rows(std::span<const int64_t> samples) const {
  Rows rows;
  if (!kept()) {
    rows = read(samples);
    for (at::Tensor& input : rows.inputs) input = input.to(device_);
    rows.labels = rows.labels.to(device_);
    return rows;
  }
  if (!device_.is_cpu())
    return this->rows(at::tensor(at::ArrayRef<int64_t>(samples.data(), samples.size()), at::kLong).to(device_));
  for (const at::Tensor& input : kept_.inputs) rows.inputs.push_back(gathered(input, samples));
  rows.labels = gathered(kept_.labels, samples);
  return rows;
}

Rows Samples::rows(const at::Tensor& samples) const {
  Rows rows;
  for (const at::Tensor& input : kept_.inputs) rows.inputs.push_back(input.index_select(0, samples));
  rows.labels = kept_.labels.index_select(0, samples);
  return rows;
}

}  // namespace netmend::training
