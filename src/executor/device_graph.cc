#include "executor/device_graph.h"

#include <ATen/ATen.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
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

  void destroy() {
    if (std::exchange(made, false)) api().destroy(graph);
  }
  ~Impl() { destroy(); }
};

DeviceGraph::DeviceGraph() : impl_(std::make_unique<Impl>()) {}
DeviceGraph::~DeviceGraph() = default;

bool DeviceGraph::available() { return at::hasCUDA() && api().complete; }

bool DeviceGraph::can_record(const model::Graph& graph) {
  // Operators whose work on a GPU follows from the shapes of their inputs alone, constants on the CPU included. Others
  // look at values (ids within their range, lengths, conditions), which waits for the GPU.
  static const std::set<std::string_view> kSteady = {"Abs",
                                                     "Add",
                                                     "AveragePool",
                                                     "BatchNormalization",
                                                     "Clip",
                                                     "Concat",
                                                     "Constant",
                                                     "Conv",
                                                     "ConvTranspose",
                                                     "Div",
                                                     "Elu",
                                                     "Erf",
                                                     "Exp",
                                                     "Flatten",
                                                     "Gelu",
                                                     "Gemm",
                                                     "GlobalAveragePool",
                                                     "GlobalMaxPool",
                                                     "GroupNormalization",
                                                     "HardSigmoid",
                                                     "HardSwish",
                                                     "Identity",
                                                     "InstanceNormalization",
                                                     "LayerNormalization",
                                                     "LeakyRelu",
                                                     "Log",
                                                     "LogSoftmax",
                                                     "MatMul",
                                                     "Max",
                                                     "MaxPool",
                                                     "Min",
                                                     "Mish",
                                                     "Mul",
                                                     "Neg",
                                                     "PRelu",
                                                     "Pow",
                                                     "ReduceMean",
                                                     "ReduceSum",
                                                     "Relu",
                                                     "Reshape",
                                                     "Selu",
                                                     "Sigmoid",
                                                     "Softmax",
                                                     "Softplus",
                                                     "Sqrt",
                                                     "Squeeze",
                                                     "Sub",
                                                     "Sum",
                                                     "Tanh",
                                                     "Transpose",
                                                     "Unsqueeze"};
  return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const model::Node& node) { return node.domain.empty() && kSteady.contains(node.op); });
}

bool DeviceGraph::record(const std::function<void()>& work) {
  if (!available() || impl_->made) return false;
  // One at a time: LibTorch keeps a list of what is being recorded.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::memset(impl_->graph, 0, kRoom);
  api().construct(impl_->graph, false), impl_->made = true;
  bool complete = true;
  try {
    // Other threads may ask for memory meanwhile: they have streams of their own.
    api().begin(impl_->graph, {0, 0}, kThisThread);
    try {
      work();
    } catch (const std::exception&) {
      complete = false;
    }
    api().end(impl_->graph);
  } catch (const std::exception&) {
    complete = false;
  }
  if (!complete) impl_->destroy();  // its memory too
  return complete;
}

void DeviceGraph::run() { api().replay(impl_->graph); }

}  // namespace netmend::executor
