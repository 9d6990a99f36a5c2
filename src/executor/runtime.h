// What must be set once before LibTorch does any work, and the memory budget that every tensor counts towards.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace netmend::executor {

/// A tensor would pass the budget: the model or the batch is too large, or the file is hostile.
class MemoryError : public InputError {
 public:
  using InputError::InputError;
};

/// Call first in main. Parallelism is ours, across batches: LibTorch and OpenBLAS get one thread each, and freed memory
/// stays with the process (without this two workers are slower than one). `budget` in bytes, 0 for most of what is
/// free.
void start_runtime(int64_t budget = 0);
/// Call first on every worker thread.
void enter_worker();

int64_t memory_budget();
/// Bytes in tensors now, and the most there ever were.
int64_t memory_used();
int64_t memory_peak();

/// The device of a `--device` flag: cpu, cuda, cuda:1. Throws InputError when this LibTorch has none such.
std::string check_device(const std::string& device);

}  // namespace netmend::executor
