// Loaded before CUDA's runtime (LD_PRELOAD): a GPU that is lost while a program works with it. After NETMEND_LOST_AFTER
// kernels everything that is asked of it fails as after an error that the driver does not recover from.
#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>

namespace {

constexpr int kLaunchFailure = 719;  ///< cudaErrorLaunchFailure

bool lost() {
  static const char* after = getenv("NETMEND_LOST_AFTER");
  static const long most = after ? atol(after) : -1;
  static std::atomic<long> launches{0};
  return most >= 0 && launches++ >= most;
}
std::atomic<bool> gone{false};

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

struct dim3 {
  unsigned x, y, z;
};

extern "C" {

// Which of the three is called depends on CUDA's version.
int cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  if (gone || lost()) return gone = true, kLaunchFailure;
  static const auto own = next<int (*)(const void*, dim3, dim3, void**, size_t, void*)>("cudaLaunchKernel");
  return own(function, grid, block, arguments, shared, stream);
}

int __cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  if (gone || lost()) return gone = true, kLaunchFailure;
  static const auto own = next<int (*)(const void*, dim3, dim3, void**, size_t, void*)>("__cudaLaunchKernel");
  return own(function, grid, block, arguments, shared, stream);
}

int cudaLaunchKernelExC(const void* config, const void* function, void** arguments) {
  if (gone || lost()) return gone = true, kLaunchFailure;
  static const auto own = next<int (*)(const void*, const void*, void**)>("cudaLaunchKernelExC");
  return own(config, function, arguments);
}

int cudaGraphLaunch(void* graph, void* stream) {
  if (gone || lost()) return gone = true, kLaunchFailure;
  static const auto own = next<int (*)(void*, void*)>("cudaGraphLaunch");
  return own(graph, stream);
}

int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  if (gone) return kLaunchFailure;
  static const auto own = next<int (*)(void*, const void*, size_t, int, void*)>("cudaMemcpyAsync");
  return own(to, from, bytes, kind, stream);
}

int cudaStreamSynchronize(void* stream) {
  if (gone) return kLaunchFailure;
  static const auto own = next<int (*)(void*)>("cudaStreamSynchronize");
  return own(stream);
}

int cudaMalloc(void** memory, size_t bytes) {
  if (gone) return kLaunchFailure;
  static const auto own = next<int (*)(void**, size_t)>("cudaMalloc");
  return own(memory, bytes);
}

int cudaFree(void* memory) {
  if (gone) return kLaunchFailure;
  static const auto own = next<int (*)(void*)>("cudaFree");
  return own(memory);
}

}  // extern "C"
