// Threads that stay: a training step is a few milliseconds of work cut into numbered tasks, many times a second, too
// short to start threads for.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace netmend::training {

class ThreadPool {
 public:
  /// `workers` counts the calling thread.
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int workers() const { return int(threads_.size()) + 1; }
  /// body(task) for tasks 0 … count−1, each once, on whichever thread is free; the calling thread helps. Returns when
  /// all are done; of several exceptions the one of the lowest task is thrown. With as many workers as tasks all of
  /// them run at the same time. At most 65535 tasks.
  void run(int count, const std::function<void(int task)>& body);

 private:
  void serve();
  void work(uint32_t round);
  /// Round, number of tasks and next task in one word, so that a thread that is late cannot take from the next round.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int> left_{0};
  std::atomic<bool> closing_{false};
  const std::function<void(int)>* body_ = nullptr;
  std::mutex mutex_;
  std::exception_ptr error_;
  int failed_task_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace netmend::training
