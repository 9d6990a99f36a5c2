#include "executor/runtime.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "base/text.h"

namespace netmend::executor {
namespace {

std::atomic<int64_t> budget_bytes{INT64_MAX}, used_bytes{0}, peak_bytes{0};
constexpr size_t kAlignment = 64;  // a cache line; the header that remembers the size takes one

void release(void* data) {
  if (!data) return;
  char* block = static_cast<char*>(data) - kAlignment;
  used_bytes -= int64_t(*reinterpret_cast<size_t*>(block));
  std::free(block);
}

/// LibTorch's CPU memory with a budget: an operator that asks for too much fails before anything is taken.
class BudgetAllocator final : public at::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) const override {
    if (bytes == 0) return {nullptr, nullptr, &release, at::Device(at::kCPU)};
    int64_t used = bytes > size_t(INT64_MAX / 2) ? INT64_MAX : used_bytes += int64_t(bytes);
    if (used > budget_bytes) {
      if (used != INT64_MAX) used_bytes -= int64_t(bytes);
      const int64_t taken = used_bytes;
      throw MemoryError(taken > 0 && double(bytes) <= double(budget_bytes)
                            ? fmt::format("it asks for {} of memory; of the {} that are allowed, {} are taken",
                                          bytes_text(double(bytes)), bytes_text(double(budget_bytes.load())),
                                          bytes_text(double(taken)))
                            : fmt::format("it asks for {} of memory, {} are allowed", bytes_text(double(bytes)),
                                          bytes_text(double(budget_bytes.load()))),
                        "Raise --memory if this is intended.");
    }
    for (int64_t peak = peak_bytes; used > peak && !peak_bytes.compare_exchange_weak(peak, used);) {
    }
    void* block = nullptr;
    if (posix_memalign(&block, kAlignment, bytes + kAlignment) != 0) {
      used_bytes -= int64_t(bytes);
      throw MemoryError(fmt::format("the machine does not have {} of memory left", bytes_text(double(bytes))));
    }
    *static_cast<size_t*>(block) = bytes;
    void* data = static_cast<char*>(block) + kAlignment;
    return {data, data, &release, at::Device(at::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
};

int64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  int64_t kilobytes = 0;
  while (info >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    std::getline(info, unit);
  }
  return int64_t(8) << 30;
}

}  // namespace

void start_runtime(int64_t budget) {
  static BudgetAllocator allocator;
  budget_bytes = budget > 0 ? budget : available_memory() / 10 * 8;
  c10::SetCPUAllocator(&allocator, /*priority=*/255);
  // Freed memory is kept for the next batch; one arena, because a worker's own one gives its pages back all the same.
  // 32 MB is the most that the C library takes for the first; a larger one is ignored and the second then fixes 128 kB.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 1);
  // OpenBLAS does not follow LibTorch's setting; another BLAS has no such function.
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(1);
  at::set_num_threads(1);
}

void enter_worker() { at::set_num_threads(1); }

int64_t memory_budget() { return budget_bytes; }
int64_t memory_used() { return used_bytes; }
int64_t memory_peak() { return peak_bytes; }

std::string check_device(const std::string& device) {
  try {
    at::Device wanted(device);
    if (wanted.is_cuda() && !at::hasCUDA()) fail("--device {}: this build of LibTorch has no CUDA", device);
    if (!wanted.is_cuda() && !wanted.is_cpu()) fail("--device {}: cpu and cuda are supported", device);
    return wanted.str();
  } catch (const c10::Error&) {
    fail("--device {}: there is no such device (try cpu, cuda or cuda:1)", device);
  }
}

}  // namespace netmend::executor
