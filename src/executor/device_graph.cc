#include "executor/device_graph.h"

#include <ATen/ATen.h>
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <utility>

namespace netmend::executor {
namespace {

constexpr size_t kRoom = 4096;  ///< LibTorch's graph takes some 300 bytes
constexpr int kThisThread = 1;  ///< cudaStreamCaptureModeThreadLocal

/// The members of at::cuda::CUDAGraph, found when the program runs: it is built without CUDA's headers, and also runs
/// with a LibTorch that has no CUDA.
struct Api {
  void (*construct)(void* graph, bool keep);
  void (*destroy)(void* graph);
  void (*begin)(void* graph, std::pair<unsigned long long, unsigned long long> pool, int mode);
  void (*end)(void* graph);
  void (*replay)(void* graph);
  bool complete = false;

  Api() {
    complete = find("C1Eb", construct) && find("D1Ev", destroy) &&
               find("13capture_beginESt4pairIyyE21cudaStreamCaptureMode", begin) && find("11capture_endEv", end) &&
               find("6replayEv", replay);
  }
  template <typename Function>
  static bool find(const char* member, Function& into) {
    into = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, (std::string("_ZN2at4cuda9CUDAGraph") + member).c_str()));
    return into != nullptr;
  }
};

const Api& api() {
  static const Api found;
  return found;
}

}  // namespace

struct DeviceGraph::Impl {
  alignas(std::max_align_t) char graph[kRoom];
  bool made = false;

  ~Impl() {
    if (made) api().destroy(graph);
  }
};

DeviceGraph::DeviceGraph() : impl_(std::make_unique<Impl>()) {}
DeviceGraph::~DeviceGraph() = default;

bool DeviceGraph::available() { return at::hasCUDA() && api().complete; }

bool DeviceGraph::record(const std::function<void()>& work) {
  if (!available() || impl_->made) return false;
  std::memset(impl_->graph, 0, kRoom);
  api().construct(impl_->graph, false), impl_->made = true;
  bool complete = true;
  // Other threads may ask for memory meanwhile: they have streams of their own.
  api().begin(impl_->graph, {0, 0}, kThisThread);
  try {
    work();
  } catch (const std::exception&) {
    complete = false;
  }
  try {
    api().end(impl_->graph);
  } catch (const std::exception&) {
    complete = false;
  }
  return complete;
}

void DeviceGraph::run() { api().replay(impl_->graph); }

}  // namespace netmend::executor
