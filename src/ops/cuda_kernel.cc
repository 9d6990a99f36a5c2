#include "ops/cuda_kernel.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"

namespace netmend::ops {
namespace {

/// What is used of CUDA's compiler (nvrtc) and driver, found in the library by which LibTorch itself reaches both.
struct Cuda {
  int (*create)(void** program, const char* source, const char* name, int, const char* const*, const char* const*);
  int (*compile)(void* program, int options, const char* const* list);
  int (*size)(void* program, size_t* bytes);
  int (*binary)(void* program, char* bytes);
  int (*destroy)(void** program);
  int (*attribute)(int* value, int which, int device);
  int (*load)(void** module, const void* image);
  int (*function)(void** function, void* module, const char* name);
  int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                void* stream, void** arguments, void** extra);
  bool complete = false;

  Cuda() {
    void* library = dlopen("libcaffe2_nvrtc.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    complete = find(library, "nvrtcCreateProgram", create) && find(library, "nvrtcCompileProgram", compile) &&
               find(library, "nvrtcGetCUBINSize", size) && find(library, "nvrtcGetCUBIN", binary) &&
               find(library, "nvrtcDestroyProgram", destroy) && find(library, "cuDeviceGetAttribute", attribute) &&
               find(library, "cuModuleLoadData", load) && find(library, "cuModuleGetFunction", function) &&
               find(library, "cuLaunchKernel", launch);
  }
  template <typename Function>
  static bool find(void* library, const char* name, Function& into) {
    into = reinterpret_cast<Function>(dlsym(library, name));
    return into != nullptr;
  }
};

const Cuda& cuda() {
  static const Cuda found;
  return found;
}

/// LibTorch's queue of this thread as the driver knows it; older versions do not tell.
template <typename Guard>
constexpr bool kTellsStreams = requires(const Guard& guard, c10::Stream stream) {
  guard.getStreamNativeHandle(stream);
};
template <typename Guard>
void* stream_of(const Guard& guard, at::Device device) {
  if constexpr (kTellsStreams<Guard>)
    return guard.getStreamNativeHandle(guard.getStream(device));
  else
    return nullptr;
}

constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…

void* compile(const std::string& source, const std::string& name, int device) {
  const Cuda& api = cuda();
  int major = 0, minor = 0;
  if (api.attribute(&major, kMajor, device) != 0 || api.attribute(&minor, kMinor, device) != 0) return nullptr;
  const std::string target = fmt::format("--gpu-architecture=sm_{}{}", major, minor);
  // Contraction is what the GPU's own convolutions do too; everything else is as IEEE says.
  const char* options[] = {target.c_str(), "--std=c++17"};
  void *program = nullptr, *module = nullptr, *function = nullptr;
  if (api.create(&program, source.c_str(), "netmend.cu", 0, nullptr, nullptr) != 0) return nullptr;
  size_t bytes = 0;
  std::string image;
  if (api.compile(program, 2, options) == 0 && api.size(program, &bytes) == 0) {
    image.resize(bytes);
    if (api.binary(program, image.data()) != 0) image.clear();
  }
  api.destroy(&program);
  if (image.empty() || api.load(&module, image.data()) != 0) return nullptr;
  return api.function(&function, module, name.c_str()) == 0 ? function : nullptr;
}

}  // namespace

const CudaKernel* CudaKernel::find(const std::string& source, const std::string& name) {
  if (!kTellsStreams<c10::impl::VirtualGuardImpl> || !cuda().complete) return nullptr;
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, std::unique_ptr<CudaKernel>> known;
  std::lock_guard lock(mutex);
  const int device = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice().index();
  auto [at, fresh] = known.try_emplace({device, name + "\n" + source});
  if (fresh)
    if (void* function = compile(source, name, device)) {
      at->second = std::make_unique<CudaKernel>();
      at->second->function_ = function;
    }
  return at->second.get();
}

void CudaKernel::launch(const at::Tensor& on, const CudaLaunch& shape, std::vector<void*> arguments) const {
  c10::impl::VirtualGuardImpl devices(on.device().type());
  const int status = cuda().launch(function_, shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared,
                                   stream_of(devices, on.device()), arguments.data(), nullptr);
  if (status != 0) throw std::runtime_error(fmt::format("the GPU refused to start a kernel (CUDA error {})", status));
}

}  // namespace netmend::ops
