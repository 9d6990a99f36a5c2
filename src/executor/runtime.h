// What must be set once before LibTorch does any work, and the memory budget that every tensor counts towards.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "base/memory_error.h"

namespace netmend::executor {

/// Call first in main. Parallelism is ours, across batches: LibTorch and OpenBLAS get one thread each, and freed memory
/// stays with the process (without this two workers are slower than one). `budget` in bytes, 0 for most of what is
/// free.
void start_runtime(int64_t budget = 0);
/// Call first on every worker thread. Where a GPU is used the thread gets a queue of work (a stream) of its own, so
/// that workers keep the GPU busy together.
void enter_worker();

int64_t memory_budget();
/// Bytes in tensors now, and the most there ever were.
int64_t memory_used();
int64_t memory_peak();

/// The device of a `--device` flag: cpu, cuda, cuda:1; auto where there is a GPU that may be worth its start, and cpu
/// for it where there is none. Throws InputError when this LibTorch has none such.
std::string check_device(const std::string& device);
/// What `auto` decides by: roughly how long so much work takes on `workers` cores, and on a GPU with its start.
struct DeviceEstimate {
  double cpu_seconds = 0, gpu_seconds = 0;
  bool gpu() const { return gpu_seconds < cpu_seconds; }
  std::string text() const;  ///< a sentence for the user
};
DeviceEstimate estimate_devices(double multiply_adds, double input_bytes, int workers);
/// Call once in main with what check_device gave. On a GPU kernels are chosen that give the same bits from run to run,
/// and products of float32 are float32 unless `precision` is tf32. With half and bf16 passes without gradients carry
/// all their values so, and the products of everything else are as with tf32. Throws InputError.
void use_device(const std::string& device, const std::string& precision = "float32");
/// Waits until the GPU has done what this thread asked for. Call before another thread may see tensors on the device;
/// without a GPU it does nothing.
void finish_device_work();
/// Inputs that go through a GPU at once at most. A command that runs out of its memory begins again with fewer.
int64_t device_batch_limit();
void set_device_batch_limit(int64_t inputs);
/// Whether the error is that a GPU's memory does not hold what was asked for.
bool is_device_memory(const std::exception& error);
/// That a batch did not fit into the GPU's memory and went through it in parts; told once, at the end.
void tell_smaller_batches();
bool smaller_batches();
/// That an operator ran on the CPU for want of a kernel; the operators by name, each once.
void tell_on_cpu(const std::string& op);
std::vector<std::string> told_on_cpu();
/// Bytes that the GPU in use has left, and has at all; 0 without one.
int64_t device_memory_free();
int64_t device_memory();

}  // namespace netmend::executor
