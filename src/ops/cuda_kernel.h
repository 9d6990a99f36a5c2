// Kernels of our own for a GPU: source text that CUDA's compiler library, which PyPI's torch brings along, compiles for
// the GPU at hand. Neither CUDA's headers nor its tools are needed to build netmend.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace netmend::ops {

struct CudaLaunch {
  unsigned blocks = 1, threads = 1;
  unsigned shared = 0;  ///< bytes of shared memory beyond what the source declares; 48 kB at most
};

/// A function `name` of `source`, compiled once in a process for each different source.
class CudaKernel {
 public:
  /// nullptr where kernels cannot be compiled: no GPU, a LibTorch without CUDA's compiler library, or a driver that
  /// does not take what it makes. Any thread may call.
  static const CudaKernel* find(const std::string& source, const std::string& name);
  /// Puts a launch into this thread's queue of work. `arguments` point to the values, as cuLaunchKernel takes them.
  void launch(const at::Tensor& on, const CudaLaunch& shape, std::vector<void*> arguments) const;

 private:
  void* function_ = nullptr;
};

}  // namespace netmend::ops
