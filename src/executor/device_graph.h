// Work for a GPU that is the same each time: recorded once, then started as a whole. A step of a small training is a
// hundred kernels of a few microseconds, and starting them one by one takes longer than running them.
#pragma once

#include <functional>
#include <memory>

#include "model/graph.h"

namespace netmend::executor {

class DeviceGraph {
 public:
  DeviceGraph();
  ~DeviceGraph();

  /// Whether this build and LibTorch can record at all.
  static bool available();
  /// Whether a forward and backward pass of the network can be recorded: none of its operators has to wait for the GPU.
  static bool can_record(const model::Graph& graph);
  /// Records `work`: it is called, its kernels are noted and not run, and the tensors that it makes stay with this
  /// graph. On a thread that called enter_worker(), after the same work has run there once, which wakes libraries and
  /// compiles kernels. False when it cannot be recorded, as when it waits for the GPU; then nothing has happened.
  bool record(const std::function<void()>& work);
  /// Puts what was recorded into this thread's queue of work. It reads and writes the same memory each time.
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::executor
