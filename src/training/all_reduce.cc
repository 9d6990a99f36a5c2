#include "training/all_reduce.h"

#include <algorithm>

#include "base/error.h"

namespace netmend::training {

void AllReduce::start(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return running_ < limit_; });
  ++running_;
}

void AllReduce::attend(int part, const std::function<void()>& work) {
  ops::Seat& seat = ops::seat();
  {
    std::unique_lock lock(mutex_);
    start(lock);
  }
  seat = {this, part};
  auto leave = [&](bool failed) {
    seat = {};
    std::lock_guard lock(mutex_);
    --running_;
    abandoned_ = abandoned_ || failed;
    changed_.notify_all();
  };
  try {
    work();
    leave(false);
  } catch (const Abandoned&) {
    leave(true);  // whoever failed first says why
  } catch (...) {
    leave(true);
    throw;
  }
}

void AllReduce::sum(int part, std::span<double> numbers) {
  std::unique_lock lock(mutex_);
  brought_[size_t(part)] = numbers;
  if (++arrived_ == parts_) {
    total_.assign(numbers.size(), 0);
    for (std::span<const double> each : brought_) {
      check(each.size() == numbers.size(), "parts meet at different places");
      for (size_t i = 0; i < each.size(); ++i) total_[i] += each[i];
    }
    arrived_ = 0;
    ++rounds_;
    changed_.notify_all();
  } else {
    uint64_t round = rounds_;
    --running_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return rounds_ != round || abandoned_; });
    start(lock);
    if (rounds_ == round) throw Abandoned{};
  }
  std::copy(total_.begin(), total_.end(), numbers.begin());
}

}  // namespace netmend::training
