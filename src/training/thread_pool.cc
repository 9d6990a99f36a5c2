#include "training/thread_pool.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "executor/runtime.h"

namespace netmend::training {
namespace {

constexpr int kSpins = 100;  ///< some ten microseconds: the pause between two rounds is mostly shorter

uint32_t round_of(uint64_t ticket) { return uint32_t(ticket >> 32); }
int tasks_in(uint64_t ticket) { return int(ticket >> 16 & 0xffff); }
int next_in(uint64_t ticket) { return int(ticket & 0xffff); }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Waits until `value` is no longer `old`: a moment awake, then asleep.
template <typename T>
void wait_change(std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int workers) {
  try {
    for (int i = 1; i < workers; ++i) threads_.emplace_back([this] { serve(); });
  } catch (const std::exception&) {  // no more threads, or no memory for one: those that are there do the work
  }
}

ThreadPool::~ThreadPool() {
  closing_ = true;
  ticket_ += uint64_t(1) << 32;
  ticket_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::serve() {
  executor::enter_worker();
  for (uint64_t seen = 0; !closing_;) {
    uint64_t now = ticket_.load(std::memory_order_acquire);
    if (round_of(now) == round_of(seen)) {
      wait_change(ticket_, now);
      continue;
    }
    seen = now;
    work(round_of(now));
  }
}

void ThreadPool::work(uint32_t round) {
  for (;;) {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    if (round_of(ticket) != round || next_in(ticket) >= tasks_in(ticket)) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    int task = next_in(ticket);
    try {
      (*body_)(task);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_ || task < failed_task_) error_ = std::current_exception(), failed_task_ = task;
    }
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
  }
}

void ThreadPool::run(int count, const std::function<void(int)>& body) {
  check(count >= 0 && count < 65536, "{} tasks", count);
  if (threads_.empty() || count <= 1) {
    for (int task = 0; task < count; ++task) body(task);
    return;
  }
  body_ = &body;
  error_ = nullptr;
  left_.store(count, std::memory_order_release);
  uint32_t round = round_of(ticket_.load()) + 1;
  ticket_.store(uint64_t(round) << 32 | uint64_t(count) << 16, std::memory_order_release);
  ticket_.notify_all();
  work(round);
  for (int left; (left = left_.load(std::memory_order_acquire)) > 0;) wait_change(left_, left);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace netmend::training
