// Any bytes as an ONNX file: read, planned and, where it is small, run; or refused. Nothing else may happen.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "executor/executor.h"
#include "executor/layers.h"
#include "executor/runtime.h"
#include "onnx/reader.h"

using namespace netmend;

namespace {

std::string model_path() {
  static std::string path = [] {
    executor::start_runtime(int64_t(256) << 20);
    char folder[] = "/tmp/netmend-fuzz-XXXXXX";
    return std::string(mkdtemp(folder)) + "/m.onnx";
  }();
  return path;
}

void run(const model::Graph& graph) {
  executor::Executor executor(graph);
  std::vector<at::Tensor> inputs;
  for (model::ValueId id : graph.inputs) {
    const model::Value& value = graph.values[size_t(id)];
    std::vector<int64_t> shape;
    for (size_t axis = 0; value.shape && axis < value.shape->size(); ++axis)
      shape.push_back(std::clamp<int64_t>((*value.shape)[axis].size, 1, 8));
    inputs.push_back(at::ones(shape, at::TensorOptions().dtype(model::carrier(value.type))));
  }
  executor.run(inputs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  write_file(model_path(), std::string_view(reinterpret_cast<const char*>(data), size));
  at::NoGradGuard no_grad;
  try {
    model::Graph graph = onnx::read_model(model_path());
    executor::find_layers(graph);
    executor::find_parameters(graph);
    if (graph.nodes.size() < 200) run(graph);
  } catch (const InputError&) {
  }
  return 0;
}
