#include "training/validation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/pool.h"
#include "executor/executor.h"
#include "executor/runtime.h"

namespace netmend::training {
namespace {

constexpr int64_t kBatch = 64, kBatchesAChunk = 8, kBatchOnDevice = 1024;

}  // namespace

Judgement judge(const model::Graph& graph, model::ValueId wanted, const LossForm& form, const Samples& data, int jobs) {
  executor::Request request;
  request.wanted = {wanted};
  request.device = data.device();
  executor::Executor executor(graph, request);
  const int64_t batch = data.device().is_cpu() ? kBatch : std::min(kBatchOnDevice, executor::device_batch_limit());
  const int64_t chunk_size = batch * kBatchesAChunk, chunks = (data.size() + chunk_size - 1) / chunk_size;
  std::vector<LossSum> sums(static_cast<size_t>(chunks));
  LossSum total;
  auto work = [&](int64_t chunk, int) {
    at::NoGradGuard no_grad;
    int64_t end = std::min(data.size(), (chunk + 1) * chunk_size);
    for (int64_t first = chunk * chunk_size; first < end; first += batch) {
      int64_t count = std::min(batch, end - first);
      // Filled up with the last input: another batch size may round differently.
      std::vector<int64_t> samples(size_t(batch), first + count - 1);
      std::iota(samples.begin(), samples.begin() + count, first);
      Rows rows = data.rows(samples);
      at::Tensor answers = executor.run(rows.inputs)[0].narrow(0, 0, count);
      LossSum sum = loss_of(form, answers, rows.labels.narrow(0, 0, count), 0);
      sums[size_t(chunk)].loss += sum.loss, sums[size_t(chunk)].right += sum.right;
    }
  };
  auto hand_over = [&](int64_t chunk) {
    total.loss += sums[size_t(chunk)].loss, total.right += sums[size_t(chunk)].right;
  };
  in_order(
      chunks, jobs > 0 ? jobs : cores(), [](int) { executor::enter_worker(); }, work, hand_over);
  double size = double(data.size()), none = std::numeric_limits<double>::quiet_NaN();
  return {total.loss / size, counts_right(form) ? double(total.right) / size : none};
}

}  // namespace netmend::training
