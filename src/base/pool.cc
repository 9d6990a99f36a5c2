#include "base/pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace netmend {
namespace {

std::atomic<bool> stop_asked{false}, ever_asked{false};

void on_signal(int) {
  ever_asked.store(true, std::memory_order_relaxed);
  if (stop_asked.exchange(true)) _exit(130);
}

/// The state that workers share; a window of items keeps the ones that are done but whose turn has not come bounded.
class Turnstile {
 public:
  Turnstile(int64_t count, int64_t window) : count_(count), window_(window), done_(size_t(window)) {}

  /// The next item to work on, or -1 when there is nothing left or somebody failed.
  int64_t take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || next_ >= count_ || next_ < handed_ + window_; });
    if (failed_ || next_ >= count_) return -1;
    if (interrupted()) {
      failed_ = true;
      stopped_ = true;
      changed_.notify_all();
      return -1;
    }
    return next_++;
  }

  /// Marks an item as done and hands over all whose turn it is; one thread at a time does that.
  void finish(int64_t item, const std::function<void(int64_t)>& hand_over) {
    std::unique_lock lock(mutex_);
    done_[size_t(item % window_)] = true;
    if (handing_) return;
    handing_ = true;
    while (!failed_ && handed_ < count_ && done_[size_t(handed_ % window_)]) {
      int64_t turn = handed_;
      lock.unlock();
      hand_over(turn);
      lock.lock();
      done_[size_t(turn % window_)] = false;
      ++handed_;
      changed_.notify_all();
    }
    handing_ = false;
  }

  void fail(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    failed_ = true;
    changed_.notify_all();
  }

  void report() const {
    if (error_) std::rethrow_exception(error_);
    if (stopped_) throw Interrupted{};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int64_t count_, window_;
  int64_t next_ = 0, handed_ = 0;
  bool handing_ = false, failed_ = false, stopped_ = false;
  std::vector<bool> done_;
  std::exception_ptr error_;
};

}  // namespace

namespace {

/// Cores that a container may use, by the limits of control groups (version 2, then 1); a large number where there are
/// none. Inside a container its own group is the root.
int quota() {
  double most = 1e6, allowed = 0, period = 0;
  if (std::string text; std::ifstream("/sys/fs/cgroup/cpu.max") >> text >> period && text != "max" && period > 0)
    most = std::strtod(text.c_str(), nullptr) / period;
  else if (std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> allowed &&
           std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period && allowed > 0 && period > 0)
    most = allowed / period;
  return std::max(1, int(std::ceil(most)));
}

int count_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return std::min(CPU_COUNT(&set), quota());
  return std::clamp(int(std::thread::hardware_concurrency()), 1, quota());
}

}  // namespace

int cores() {
  static const int count = count_cores();
  return count;
}

void in_order(int64_t count, int workers, const std::function<void(int)>& enter,
              const std::function<void(int64_t, int)>& work, const std::function<void(int64_t)>& hand_over) {
  workers = int(std::min<int64_t>(std::max(workers, 1), std::max<int64_t>(count, 1)));
  if (workers == 1) {
    enter(0);
    for (int64_t item = 0; item < count; ++item) {
      if (interrupted()) throw Interrupted{};
      work(item, 0);
      hand_over(item);
    }
    return;
  }
  Turnstile turnstile(count, 4 * workers);
  auto run = [&](int worker) {
    try {
      enter(worker);
      for (int64_t item; (item = turnstile.take()) >= 0;) {
        work(item, worker);
        turnstile.finish(item, hand_over);
      }
    } catch (...) {
      turnstile.fail(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int worker = 0; worker < workers; ++worker) threads.emplace_back(run, worker);
  } catch (const std::exception&) {  // no more threads, or no memory for one: those that are there do the work
    if (threads.empty()) run(0);
  }
  for (std::thread& thread : threads) thread.join();
  turnstile.report();
}

bool interrupted() { return stop_asked.load(std::memory_order_relaxed); }

bool was_interrupted() { return ever_asked.load(std::memory_order_relaxed); }

void forget_interrupt() { stop_asked.store(false, std::memory_order_relaxed); }

void stop_on_interrupt() {
  stop_asked = ever_asked = false;  // what was stopped before is over
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup, and jobs in the background
    sigaddset(&blocked, signal);
  }
  signal(SIGXFSZ, SIG_IGN);                         // a file beyond the limit of its size is an error that has words
  pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);  // whoever started us held them back until now
}

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted{};
}

}  // namespace netmend
