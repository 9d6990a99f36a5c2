#include "studies/run_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/pool.h"
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

/// A state of a network: what it gives as an output at one step is its input at the next.
struct Carried {
  model::ValueId output = model::kAbsent;
  size_t input = 0;  ///< place among the graph's inputs
  at::Tensor start;
};

std::vector<Carried> parse_carried(const model::Graph& graph, const std::vector<std::string>& texts) {
  std::vector<Carried> states;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) fail("--carry {}: expected OUTPUT=INPUT", text);
    Carried one{session::choose_output(graph, text.substr(0, equals)), 0, {}};
    const model::ValueId id = graph.find(text.substr(equals + 1));
    const auto at = std::find(graph.inputs.begin(), graph.inputs.end(), id);
    if (id == model::kAbsent || at == graph.inputs.end()) fail("the model has no input `{}`", text.substr(equals + 1));
    one.input = size_t(at - graph.inputs.begin());
    const model::Value& value = graph.values[size_t(id)];
    if (!model::supported(value.type)) fail("elements of `{}` are not supported", value.name);
    states.push_back(std::move(one));
  }
  return states;
}

/// Zeros of the declared shape; what the file leaves open is 1.
at::Tensor empty_state(const model::Value& value) {
  if (!value.shape) fail("the model does not say the shape of `{}`: give its start with --input", value.name);
  std::vector<int64_t> shape;
  for (const model::Dim& size : *value.shape) shape.push_back(size.size > 0 ? size.size : 1);
  return at::zeros(shape, at::TensorOptions().dtype(model::carrier(value.type)));
}

std::vector<at::Tensor> read_inputs(const model::Graph& graph, const std::vector<std::string>& given,
                                    const std::vector<Carried>& states) {
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
    const bool state =
        std::any_of(states.begin(), states.end(), [&](const auto& s) { return s.input == inputs.size(); });
    if (state && !files.count(name)) {
      inputs.push_back(empty_state(graph.values[size_t(graph.inputs[inputs.size()])]));
      continue;
    }
    if (!files.count(name)) fail("input `{}` is not given: add --input {}=FILE.npy", name, name);
    inputs.push_back(read_array(files[name]));
    const model::Value& value = graph.values[size_t(graph.find(name))];
    if (value.shape && value.shape->empty() && inputs.back().numel() == 1) inputs.back() = inputs.back().reshape({});
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

std::vector<int64_t> read_sequences(const std::string& path, int64_t steps) {
  if (path.empty()) return std::vector<int64_t>(size_t(steps), 0);
  const at::Tensor numbers = read_array(path);
  if (numbers.is_floating_point() || numbers.dim() != 1 || numbers.size(0) != steps)
    fail("{} must hold one whole number for each of the {} steps", path, steps);
  const at::Tensor whole = numbers.to(at::kLong).contiguous();
  return {whole.data_ptr<int64_t>(), whole.data_ptr<int64_t>() + steps};
}

/// What each step gave, one below the other; outputs whose first axis counts inputs keep it.
at::Tensor all_steps(const std::vector<at::Tensor>& steps) {
  return steps[0].dim() > 0 && steps[0].size(0) == 1 ? at::cat(steps, 0) : at::stack(steps, 0);
}

struct Stepped {
  std::vector<at::Tensor> outputs, states;  ///< states: as each step began with them
};

/// `wanted` first, then the states' outputs.
Stepped run_steps(const executor::Executor& executor, const model::Graph& graph, std::vector<at::Tensor> inputs,
                  std::vector<Carried> states, size_t wanted, const std::string& sequences) {
  int64_t steps = 1;
  std::vector<bool> is_state(inputs.size());
  for (Carried& state : states) is_state[state.input] = true, state.start = inputs[state.input];
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!is_state[i] && inputs[i].dim() > 0) steps = std::max(steps, inputs[i].size(0));
  const std::vector<int64_t> sequence = read_sequences(sequences, steps);
  std::vector<std::vector<at::Tensor>> outputs(wanted), begun(states.size());
  std::vector<at::Tensor> now;
  for (const Carried& state : states) now.push_back(state.start);
  for (int64_t step = 0; step < steps; ++step) {
    stop_if_interrupted();
    std::vector<at::Tensor> given = inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_state[i] || inputs[i].dim() == 0 || (inputs[i].size(0) == 1 && steps > 1)) continue;  // the same each time
      if (inputs[i].size(0) != steps)
        fail("input `{}` has {} steps, another has {}", graph.values[size_t(graph.inputs[i])].name, inputs[i].size(0),
             steps);
      given[i] = inputs[i].narrow(0, step, 1);
    }
    for (size_t s = 0; s < states.size(); ++s) {
      if (step > 0 && sequence[size_t(step)] != sequence[size_t(step) - 1]) now[s] = states[s].start;
      begun[s].push_back(now[s].to(at::kCPU)), given[states[s].input] = now[s];
    }
    std::vector<at::Tensor> made = executor.run(given);
    for (size_t i = 0; i < wanted; ++i) outputs[i].push_back(made[i].to(at::kCPU));
    for (size_t s = 0; s < states.size(); ++s) {
      const at::Tensor& next = made[wanted + s];
      if (next.sizes() != now[s].sizes())
        fail("`{}` has the shape {}, the state `{}` that it is carried to has {}",
             graph.values[size_t(states[s].output)].name, shape_text({next.sizes().data(), next.sizes().size()}),
             graph.values[size_t(graph.inputs[states[s].input])].name,
             shape_text({now[s].sizes().data(), now[s].sizes().size()}));
      now[s] = next;
    }
  }
  Stepped all;
  for (const auto& one : outputs) all.outputs.push_back(all_steps(one));
  for (const auto& one : begun) all.states.push_back(all_steps(one));
  return all;
}

}  // namespace

std::vector<WrittenOutput> run_model(const RunRequest& request) {
  model::Graph graph = onnx::read_model(request.model);
  executor::Request how;
  for (const std::string& name : request.outputs) how.wanted.push_back(session::choose_output(graph, name));
  if (how.wanted.empty()) how.wanted = graph.outputs;
  how.device = at::Device(request.device);
  if (request.float64) how.precision = at::kDouble;
  const std::vector<Carried> states = parse_carried(graph, request.carry);
  if (states.empty() && !request.sequences.empty()) fail("--sequences is about states: name them with --carry");
  std::vector<model::ValueId> names = how.wanted;
  for (const Carried& state : states) how.wanted.push_back(state.output), names.push_back(graph.inputs[state.input]);
  executor::Executor executor(graph, how);
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> outputs = read_inputs(graph, request.inputs, states);
  if (states.empty()) {
    outputs = executor.run(outputs);
  } else {
    Stepped all =
        run_steps(executor, graph, std::move(outputs), states, names.size() - states.size(), request.sequences);
    outputs = std::move(all.outputs);
    outputs.insert(outputs.end(), all.states.begin(), all.states.end());
  }
  make_folders(request.folder);
  std::vector<WrittenOutput> written;
  std::map<std::string, int> taken;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const model::Value& value = graph.values[size_t(names[i])];
    std::string file = safe_file_name(value.name);
    if (taken[file]++) file += "_" + std::to_string(taken[file]);
    written.push_back({value.name, request.folder + "/" + file + ".npy", outputs[i].sizes().vec()});
    write_array(written.back().file, outputs[i], request.float64 ? model::Element::kUndefined : value.type);
  }
  return written;
}

}  // namespace netmend::studies
