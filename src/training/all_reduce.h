// Batch norm needs statistics of the whole batch, so the parts of a split batch all-reduce them: each contributes its
// sums, waits at a barrier, and gets the total, added in the order of parts.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "ops/split_batch.h"

namespace netmend::training {

class AllReduce : public ops::SplitBatch {
 public:
  /// `running`: how many parts may compute at the same time; one that waits for the others does not count.
  AllReduce(int parts, int running) : parts_(parts), limit_(running), brought_(size_t(parts)) {}

  /// Runs a part's work on this thread. When it throws, the others that wait are ended too, with Abandoned.
  void attend(int part, const std::function<void()>& work);
  void sum(int part, std::span<double> numbers) override;

 private:
  struct Abandoned : std::exception {};
  void start(std::unique_lock<std::mutex>& lock);
  int parts_, limit_, running_ = 0, arrived_ = 0;
  uint64_t rounds_ = 0;
  bool abandoned_ = false;
  std::vector<std::span<const double>> brought_;
  std::vector<double> total_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace netmend::training
