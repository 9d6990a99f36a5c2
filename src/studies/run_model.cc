#include "studies/run_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/text.h"
#include "dataset/npy.h"
#include "executor/executor.h"
#include "model/numpy_type.h"
#include "onnx/reader.h"
#include "session/session.h"

namespace netmend::studies {
namespace {

at::Tensor read_array(const std::string& path) {
  dataset::Array array = dataset::read_npy(dataset::open_bytes(path));
  int64_t count = model::checked_count(array.shape);
  bool real = array.type >= dataset::Element::kF16;
  at::ScalarType type = array.type == dataset::Element::kF64 ? at::kDouble : real ? at::kFloat : at::kLong;
  at::Tensor out = at::empty(array.shape, at::TensorOptions().dtype(type));
  int64_t each = array.sample_bytes(), rows = array.shape.empty() ? 1 : array.count(), elements = array.elements();
  if (count == 0) return out;
  std::vector<int64_t> all(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) all[size_t(i)] = i;
  dataset::for_runs(array, all, [&](const uint8_t* raw, int64_t position, int64_t run) {
    for (int64_t i = 0; i < run; ++i) {
      const uint8_t* from = raw + i * (array.stride ? array.stride : each);
      int64_t at = (position + i) * elements;
      if (type == at::kDouble)
        dataset::to_doubles(from, array.type, array.swapped, elements, out.data_ptr<double>() + at);
      else if (real)
        dataset::to_floats(from, array.type, array.swapped, elements, out.data_ptr<float>() + at);
      else
        dataset::to_longs(from, array.type, array.swapped, elements, out.data_ptr<int64_t>() + at);
    }
  });
  return array.type == dataset::Element::kBool ? out.ne(0) : out;
}

/// In the type that the model declares, where its carrier is what was computed.
void write_array(const std::string& path, const at::Tensor& tensor, model::Element declared) {
  bool as_declared = model::supported(declared) && model::carrier(declared) == tensor.scalar_type() &&
                     declared != model::Element::kBFloat16;
  model::Element stored = as_declared ? declared : model::element_of(tensor.scalar_type());
  write_file(path, npy_header(model::numpy_type(stored), {tensor.sizes().data(), tensor.sizes().size()}) +
                       model::encode(stored, tensor));
}

std::vector<at::Tensor> read_inputs(const model::Graph& graph, const std::vector<std::string>& given) {
  std::map<std::string, std::string> files;
  std::vector<std::string> names;
  for (model::ValueId id : graph.inputs) names.push_back(graph.values[size_t(id)].name);
  for (const std::string& text : given) {
    size_t equals = text.rfind('=');
    std::string name = equals == std::string::npos && names.size() == 1 ? names[0] : text.substr(0, equals);
    if (equals == std::string::npos && names.size() != 1) fail("--input {}: expected NAME=FILE.npy", text);
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail("the model has no input `{}`{}; it has {}", name, did_you_mean(name, names), join(names, ", "));
    files[name] = equals == std::string::npos ? text : text.substr(equals + 1);
  }
  std::vector<at::Tensor> inputs;
  for (const std::string& name : names) {
    if (!files.count(name)) fail("input `{}` is not given: add --input {}=FILE.npy", name, name);
    inputs.push_back(read_array(files[name]));
    const model::Value& value = graph.values[size_t(graph.find(name))];
    bool whole = model::supported(value.type) && !at::isFloatingType(model::carrier(value.type));
    if (whole && inputs.back().is_floating_point())
      fail("input `{}` expects {}, but {} holds real numbers", name, model::element_name(value.type), files[name]);
  }
  return inputs;
}

std::string safe_file_name(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' ? c : '_';
  while (!out.empty() && out[0] == '.') out.erase(0, 1);
  return out.empty() ? "output" : out.substr(0, 120);
}

}  // namespace

std::vector<WrittenOutput> run_model(const RunRequest& request) {
  model::Graph graph = onnx::read_model(request.model);
  executor::Request how;
  for (const std::string& name : request.outputs) how.wanted.push_back(session::choose_output(graph, name));
  if (how.wanted.empty()) how.wanted = graph.outputs;
  how.device = at::Device(request.device);
  if (request.float64) how.precision = at::kDouble;
  executor::Executor executor(graph, how);
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> outputs = executor.run(read_inputs(graph, request.inputs));
  make_folders(request.folder);
  std::vector<WrittenOutput> written;
  std::map<std::string, int> taken;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const model::Value& value = graph.values[size_t(how.wanted[i])];
    std::string file = safe_file_name(value.name);
    if (taken[file]++) file += "_" + std::to_string(taken[file]);
    written.push_back({value.name, request.folder + "/" + file + ".npy", outputs[i].sizes().vec()});
    write_array(written.back().file, outputs[i], request.float64 ? model::Element::kUndefined : value.type);
  }
  return written;
}

}  // namespace netmend::studies
