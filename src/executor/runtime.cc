#include "executor/runtime.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/escape.h"
#include "base/pool.h"
#include "base/text.h"
#include "executor/executor.h"
#include "model/guard.h"

namespace netmend::executor {
namespace {

std::atomic<int64_t> budget_bytes{INT64_MAX}, used_bytes{0}, peak_bytes{0};
constexpr size_t kAlignment = 64;        // a cache line; the header of a block takes one
constexpr int64_t kUncounted = 1 << 20;  ///< bytes that a thread takes or gives back before it tells the others
constexpr size_t kLargestKept = 64 << 20;
constexpr size_t kMostKept = 128 << 20;  ///< bytes of free blocks per thread
constexpr int kSteps = 4;                ///< sizes per power of two: a block is at most a quarter too large

struct Header {
  size_t bytes;  ///< asked for
  int size;      ///< its place among the sizes, or -1 for a block that is not kept
};

/// Sizes of blocks: 64 · 2^(i / kSteps), with the steps between powers of two at equal distances.
int size_of(size_t bytes) {
  if (bytes > kLargestKept) return -1;
  const size_t lines = (bytes + kAlignment - 1) / kAlignment;
  if (lines <= 1) return 0;
  const int power = 63 - __builtin_clzll(lines - 1);  // 2^power < lines ≤ 2^(power + 1)
  const size_t base = size_t(1) << power, step = std::max<size_t>(1, base / kSteps);
  return power * kSteps + int((lines - base + step - 1) / step);
}
size_t bytes_of(int size) {
  const size_t base = size_t(1) << (size / kSteps);
  return kAlignment * (base + size_t(size % kSteps) * std::max<size_t>(1, base / kSteps));
}

/// What a thread keeps for itself, so that workers neither wait for each other nor give pages back that the next batch
/// asks for again. A block may end with another thread than the one that took it.
class ThreadMemory {
 public:
  ~ThreadMemory() {
    alive_ = false;
    used_bytes += uncounted_;
    for (auto& blocks : free_)
      for (void* block : blocks) std::free(block);
  }
  /// Null where the thread is about to end.
  static ThreadMemory* own() {
    thread_local ThreadMemory memory;
    return alive_ ? &memory : nullptr;
  }

  /// Bytes in tensors, as far as this thread knows, with `bytes` more.
  int64_t count(int64_t bytes) {
    uncounted_ += bytes;
    if (std::abs(uncounted_) < kUncounted) return used_bytes.load(std::memory_order_relaxed) + uncounted_;
    return used_bytes += std::exchange(uncounted_, 0);
  }
  void* take(int size) {
    if (size < 0 || free_[size_t(size)].empty()) return nullptr;
    void* block = free_[size_t(size)].back();
    free_[size_t(size)].pop_back();
    kept_ -= bytes_of(size);
    return block;
  }
  bool keep(int size, void* block) {
    if (size < 0 || kept_ + bytes_of(size) > kMostKept) return false;
    free_[size_t(size)].push_back(block);
    kept_ += bytes_of(size);
    return true;
  }

 private:
  inline static thread_local bool alive_ = true;
  int64_t uncounted_ = 0;
  size_t kept_ = 0;
  std::array<std::vector<void*>, 26 * kSteps> free_;
};

int64_t count(int64_t bytes) {
  ThreadMemory* own = ThreadMemory::own();
  return own ? own->count(bytes) : used_bytes += bytes;
}

void release(void* data) {
  if (!data) return;
  char* block = static_cast<char*>(data) - kAlignment;
  const Header header = *reinterpret_cast<Header*>(block);
  count(-int64_t(header.bytes));
  ThreadMemory* own = ThreadMemory::own();
  if (!own || !own->keep(header.size, block)) std::free(block);
}

[[noreturn]] void refuse(size_t bytes, int64_t taken) {
  const double most = double(budget_bytes.load());
  throw MemoryError(
      taken > 0 && double(bytes) <= most
          ? fmt::format("it asks for {} of memory; of the {} that are allowed, {} are taken", bytes_text(double(bytes)),
                        bytes_text(most), bytes_text(double(taken)))
          : fmt::format("it asks for {} of memory, {} are allowed", bytes_text(double(bytes)), bytes_text(most)),
      "Raise --memory if this is intended.");
}

/// Takes the bytes from the budget.
void charge(size_t bytes) {
  if (bytes > size_t(INT64_MAX / 2)) refuse(bytes, used_bytes);
  const int64_t used = count(int64_t(bytes));
  if (used > budget_bytes.load(std::memory_order_relaxed)) refuse(bytes, count(-int64_t(bytes)));
  for (int64_t peak = peak_bytes.load(std::memory_order_relaxed);
       used > peak && !peak_bytes.compare_exchange_weak(peak, used);) {
  }
}

void* new_block(size_t bytes, int size) {
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, (size < 0 ? bytes : bytes_of(size)) + kAlignment) == 0) return block;
  count(-int64_t(bytes));
  throw MemoryError(fmt::format("the machine does not have {} of memory left", bytes_text(double(bytes))));
}

/// LibTorch's CPU memory with a budget: an operator that asks for too much fails before anything is taken.
/// LibTorch 2 dropped the const of `allocate` and made `copy_data` pure; here is what either version overrides.
class BudgetAllocator final : public at::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) const { return take(bytes); }
  at::DataPtr allocate(size_t bytes) { return take(bytes); }
  void copy_data(void* to, const void* from, size_t count) const { std::memcpy(to, from, count); }
  at::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static at::DataPtr take(size_t bytes) {
    if (bytes == 0) return {nullptr, nullptr, &release, at::Device(at::kCPU)};
    charge(bytes);
    const int size = size_of(bytes);
    ThreadMemory* own = ThreadMemory::own();
    void* block = own ? own->take(size) : nullptr;
    if (!block) block = new_block(bytes, size);
    *static_cast<Header*>(block) = {bytes, size};
    void* data = static_cast<char*>(block) + kAlignment;
    return {data, data, &release, at::Device(at::kCPU)};
  }
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
  // What is no tensor: freed memory is kept for the next batch. A worker's own arena gives its pages back all the same,
  // and a single one makes many workers wait for each other.
  // 32 MB is the most that the C library takes for the first; a larger one is ignored and the second then fixes 128 kB.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, std::max(1, cores() / 2));
  // OpenBLAS does not follow LibTorch's setting; another BLAS has no such function.
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(1);
  try {  // LibTorch's own pool waits forever for threads that could not be started
    std::thread([] {}).join();
  } catch (const std::system_error&) {
    throw InputError("no thread can be started", "The system allows this user or container no more (ulimit -u).");
  }
  at::set_num_threads(1);
}

namespace {

at::Device device_in_use = at::kCPU;
at::ScalarType carried_in_passes = at::kFloat;

/// The CUDA runtime's own, which LibTorch has loaded; its headers are not needed for two numbers.
std::pair<int64_t, int64_t> free_and_all() {
  using MemoryInfo = int (*)(size_t*, size_t*);
  static const auto ask = reinterpret_cast<MemoryInfo>(dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
  size_t free = 0, all = 0;
  if (device_in_use.is_cpu() || !ask || ask(&free, &all) != 0) return {0, 0};
  return {int64_t(free), int64_t(all)};
}

/// A thread's stream. LibTorch keeps freed memory for the stream that used it: threads that end leave theirs to those
/// that come, which then find memory of the sizes that they need.
class WorkerStream {
 public:
  WorkerStream() {
    c10::impl::VirtualGuardImpl devices(device_in_use.type());
    devices.setDevice(device_in_use);
    devices.getStream(device_in_use).synchronize();
    std::lock_guard lock(mutex_);
    stream_ = free_.empty() ? devices.getStreamFromGlobalPool(device_in_use) : free_.back();
    if (!free_.empty()) free_.pop_back();
    devices.exchangeStream(*stream_);
  }
  ~WorkerStream() {
    std::lock_guard lock(mutex_);
    free_.push_back(*stream_);
  }

 private:
  inline static std::mutex mutex_;
  inline static std::vector<c10::Stream> free_;
  std::optional<c10::Stream> stream_;
};

}  // namespace

void enter_worker() {
  at::set_num_threads(1);
  if (device_in_use.is_cpu()) return;
  thread_local WorkerStream own;
}

namespace {

const std::map<std::string, at::ScalarType>& carriers() {
  static const std::map<std::string, at::ScalarType> all = {
      {"float32", at::kFloat}, {"tf32", at::kFloat}, {"half", at::kHalf}, {"bf16", at::kBFloat16}};
  return all;
}

}  // namespace

void check_precision(const std::string& precision) {
  if (!carriers().contains(precision))
    fail("--precision {}: float32, tf32, half and bf16 are supported", printable(precision));
}

void use_device(const std::string& device, const std::string& precision) {
  check_precision(precision);
  device_in_use = at::Device(device);
  if (device_in_use.is_cpu() && precision != "float32")
    throw InputError(fmt::format("--precision {} needs a GPU", precision), "Add --device cuda, or leave it out.");
  if (device_in_use.is_cpu()) return;
  if (!device_in_use.has_index()) device_in_use.set_index(0);
  c10::impl::VirtualGuardImpl devices(device_in_use.type());
  devices.setDevice(device_in_use);
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(precision != "float32"), context.setAllowTF32CuDNN(precision != "float32");
  carried_in_passes = carriers().at(precision);
  context.setDeterministicCuDNN(true);
  // cuBLAS promises the same bits only with workspaces of a fixed size.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  // The first kernel tells whether driver and library fit; one with a gradient also wakes the thread that computes
  // those.
  try {
    at::AutoGradMode grad(true);
    at::Tensor x = at::ones({2}, at::TensorOptions(device_in_use)).requires_grad_();
    (x * x).sum().backward();
    finish_device_work();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (what.find("out of memory") != std::string::npos)
      throw InputError(fmt::format("--device {}: other programs have taken the GPU's memory", device),
                       "nvidia-smi tells which. Or leave --device out.");
    throw InputError(
        fmt::format("--device {}: the GPU cannot be used: {}", device, printable(what.substr(0, what.find('\n')))),
        "Does the driver fit this LibTorch? nvidia-smi shows its version. Or leave --device out.");
  }
}

at::ScalarType pass_precision() { return carried_in_passes; }

at::Tensor brought(const at::Tensor& tensor, at::Device device) {
  if (!device.is_cuda() || !tensor.device().is_cpu() || tensor.numel() == 0) return tensor.to(device);
  at::Tensor pinned = at::empty(tensor.sizes(), tensor.options().pinned_memory(true));
  pinned.copy_(tensor);
  return pinned.to(device, /*non_blocking=*/true);  // the memory is given back once the copy is through
}

namespace {
std::atomic<int64_t> batch_limit{INT64_MAX};
std::atomic<bool> smaller{false};
}  // namespace

int64_t device_batch_limit() { return batch_limit; }
void set_device_batch_limit(int64_t inputs) { batch_limit = inputs; }
bool is_device_memory(const std::exception& error) {
  // The libraries below LibTorch say it in words alone: CUBLAS_STATUS_ALLOC_FAILED, CUDNN_STATUS_ALLOC_FAILED.
  return dynamic_cast<const model::DeviceMemoryError*>(&error) || dynamic_cast<const c10::OutOfMemoryError*>(&error) ||
         std::string_view(error.what()).find("STATUS_ALLOC_FAILED") != std::string_view::npos;
}
void tell_smaller_batches() { smaller = true; }
bool smaller_batches() { return smaller; }

namespace {
std::mutex on_cpu_mutex;
std::set<std::string> on_cpu;
}  // namespace

void tell_on_cpu(const std::string& op) {
  std::lock_guard lock(on_cpu_mutex);
  on_cpu.insert(op);
}
std::vector<std::string> told_on_cpu() {
  std::lock_guard lock(on_cpu_mutex);
  return {on_cpu.begin(), on_cpu.end()};
}

void finish_device_work() {
  if (device_in_use.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device_in_use.type()).getStream(device_in_use).synchronize();
}

int64_t device_memory_free() { return free_and_all().first; }
int64_t device_memory() { return free_and_all().second; }

int64_t memory_budget() { return budget_bytes; }
int64_t memory_used() { return used_bytes; }
int64_t memory_peak() { return peak_bytes; }

DeviceEstimate estimate_devices(double multiply_adds, double input_bytes, int workers) {
  // What LeNet-5 and resnet20 reach (docs/performance.md), rounded down: a core 60 to 130 GFLOP/s, an H200 30 TFLOP/s
  // in large batches and a tenth of that in small ones. CUDA and its kernels take two to three seconds to start.
  constexpr double kCore = 5e10, kGpu = 3e12, kStart = 3, kBus = 2e9;
  const double flops = 2 * multiply_adds;
  return {flops / (kCore * std::max(1, workers)), kStart + flops / kGpu + input_bytes / kBus};
}

std::string DeviceEstimate::text() const {
  auto about = [](double seconds) {
    return seconds < 1 ? std::string("less than a second") : fmt::format("about {}", duration_text(seconds));
  };
  return fmt::format(
      "--device auto: the {}; by a rough estimate the work takes the CPU {} and a GPU {}, its start included",
      gpu() ? "GPU" : "CPU", about(cpu_seconds), about(gpu_seconds));
}

std::string check_device(const std::string& device) {
  if (device == "auto") {
    const bool there = at::hasCUDA() && c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount() > 0;
    return there ? "auto" : "cpu";
  }
  try {
    at::Device wanted(device);
    if (!wanted.is_cuda() && !wanted.is_cpu()) fail("--device {}: cpu and cuda are supported", device);
    if (wanted.is_cpu()) return wanted.str();
    if (!at::hasCUDA())
      throw InputError(fmt::format("--device {}: this build of LibTorch has no CUDA, or there is no GPU here", device),
                       "Leave --device out, or build with PyPI's torch: ./dev build --torch pip");
    const int64_t devices = c10::impl::VirtualGuardImpl(wanted.type()).deviceCount();
    if (devices == 0)
      throw InputError(fmt::format("--device {}: no GPU can be used here", device), "Leave --device out.");
    if (wanted.has_index() && wanted.index() >= devices)
      fail("--device {}: there {} {} GPU{}, cuda:0{}", device, devices == 1 ? "is" : "are", devices,
           devices == 1 ? "" : "s", devices == 1 ? "" : fmt::format(" to cuda:{}", devices - 1));
    return wanted.str();
  } catch (const c10::Error&) {
    fail("--device {}: there is no such device (try cpu, cuda, cuda:1 or auto)", printable(device));
  }
}

}  // namespace netmend::executor
