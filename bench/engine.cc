// Answers one request a line: `forward MODEL BATCH JOBS SECONDS`, `peak SECONDS`, `flops MODEL`, `profile MODEL BATCH`,
// `pass MODEL DATA JOBS plain|spectra`, `relevance MODEL BATCH JOBS SECONDS layers|inputs`. Numbers come back as JSON.
#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "executor/executor.h"
#include "executor/runtime.h"
#include "explain/relevance.h"
#include "localise/candidates.h"
#include "localise/ranking.h"
#include "onnx/reader.h"
#include "peak.h"
#include "stream/layers.h"
#include "stream/pass.h"

namespace netmend::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<at::Tensor> random_inputs(const model::Graph& graph, int64_t batch) {
  std::vector<at::Tensor> inputs;
  for (model::ValueId id : graph.inputs) {
    const model::Value& value = graph.values[size_t(id)];
    std::vector<int64_t> shape{batch};
    for (size_t axis = 1; axis < value.shape->size(); ++axis) shape.push_back((*value.shape)[axis].size);
    bool ids = model::carrier(value.type) == at::kLong;
    inputs.push_back(ids ? at::randint(100, shape, at::kLong) : at::rand(shape));
  }
  return inputs;
}

/// Inputs a second, all workers together, after a warm-up.
double rate(int64_t batch, int jobs, double seconds, const std::function<void()>& run) {
  std::atomic<int64_t> done{0};
  std::atomic<bool> counting{false}, stop{false};
  auto work = [&] {
    executor::enter_worker();
    at::NoGradGuard no_grad;
    while (!stop) {
      run();
      if (counting) done += batch;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < jobs; ++i) threads.emplace_back(work);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 4));
  counting = true;
  auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  counting = false;
  double spent = std::chrono::duration<double>(Clock::now() - start).count();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return double(done) / spent;
}

double forward(const std::string& path, int64_t batch, int jobs, double seconds) {
  model::Graph graph = onnx::read_model(path);
  executor::Executor executor(graph);
  std::vector<at::Tensor> inputs = random_inputs(graph, batch);
  return rate(batch, jobs, seconds, [&] { executor.run(inputs); });
}

/// Of all hidden layers, the first one included; or of the inputs.
double relevance(const std::string& path, int64_t batch, int jobs, double seconds, bool to_inputs) {
  model::Graph graph = onnx::read_model(path);
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  std::vector<model::ValueId> wanted = graph.inputs;
  if (!to_inputs) {
    wanted.clear();
    for (const model::Layer& layer : executor::find_layers(graph))
      if (layer.post != head.logits) wanted.push_back(layer.post);
  }
  explain::Explainer explainer(graph, head, wanted);
  std::vector<at::Tensor> inputs = random_inputs(graph, batch);
  return rate(batch, jobs, seconds, [&] { explainer.run(inputs); });
}

/// Multiply-adds times two that convolutions and products of one input need.
double flops(const std::string& path) {
  model::Graph graph = onnx::read_model(path);
  executor::Request request;
  request.mode = executor::Mode::kPlain;
  executor::Executor executor(graph, request);
  double total = 0;
  executor::RunOptions options;
  options.trace = [&](int node, std::span<const at::Tensor> in, std::span<const at::Tensor> out) {
    const model::Node& at = graph.nodes[size_t(node)];
    if (at.op == "Conv") total += 2.0 * double(out[0].numel()) * double(in[1].numel() / in[1].size(0));
    if (at.op == "Gemm" || at.op == "MatMul") total += 2.0 * double(out[0].numel()) * double(in[0].size(-1));
  };
  at::NoGradGuard no_grad;
  executor.run(random_inputs(graph, 1), options);
  return total;
}

/// Microseconds an input in each kind of operator, of the graph as it runs.
nlohmann::json profile(const std::string& path, int64_t batch) {
  model::Graph graph = onnx::read_model(path);
  executor::Executor executor(graph);
  std::vector<at::Tensor> inputs = random_inputs(graph, batch);
  at::NoGradGuard no_grad;
  for (int i = 0; i < 20; ++i) executor.run(inputs);
  std::map<std::string, double> spent;
  auto last = Clock::now();
  executor::RunOptions options;
  options.trace = [&](int node, std::span<const at::Tensor>, std::span<const at::Tensor>) {
    auto now = Clock::now();
    spent[executor.node_name(node)] +=
        std::chrono::duration<double, std::micro>(now - last).count() / double(batch * 50);
    last = Clock::now();
  };
  for (int i = 0; i < 50; ++i) last = Clock::now(), executor.run(inputs, options);
  return spent;
}

/// Seconds, and processor seconds of all threads, of a pass that judges every answer; with `spectra`, one that also
/// counts them for all units and ranks the units by every measure.
nlohmann::json pass(const std::string& path, const std::string& spec, int jobs, bool spectra) {
  model::Graph graph = onnx::read_model(path);
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  std::shared_ptr<const dataset::Dataset> data = dataset::open(spec);
  stream::Subject subject(path, std::move(graph), data, {head.output, head.logits});
  dataset::Batch few = data->read(stream::spread(data->size(), 64));
  auto settings =
      observers::settle_task(subject.graph, head, data->info(), few, stream::run_few(subject, {head.output}, few)[0]);
  observers::Predictions predictions(settings, false);
  observers::Spectrum spectrum(
      settings, localise::candidates(stream::find_layers(subject), subject.graph, head, settings.outputs));
  std::vector<const stream::Observer*> observers{&predictions};
  if (spectra) observers.push_back(&spectrum);
  stream::PassOptions options;
  options.jobs = jobs;
  options.quiet = true;
  auto start = Clock::now();
  std::clock_t spent = std::clock();
  stream::PassResult done = stream::run_pass(subject, observers, options);
  if (spectra) {
    auto state = done.collected[1].fold(spectrum);
    auto draws = localise::draw(localise::evidence_of(dynamic_cast<const observers::SpectrumState&>(*state)), 100, 1);
    auto places = localise::unit_places(spectrum.layers());
    for (const localise::Measure& measure : localise::measures())
      if (measure.score) localise::rank_units(places, localise::spectrum_scores(draws, {&measure}, 1), 10);
  }
  return {{"seconds", std::chrono::duration<double>(Clock::now() - start).count()},
          {"pass", done.seconds},
          {"processor", double(std::clock() - spent) / CLOCKS_PER_SEC}};
}

nlohmann::json answer(const std::string& line) {
  std::istringstream words(line);
  std::string what, model, data, with;
  int64_t batch = 0;
  int jobs = 0;
  double seconds = 0;
  words >> what;
  if (what == "forward" && words >> model >> batch >> jobs >> seconds)
    return {{"rate", forward(model, batch, jobs, seconds)}};
  if (what == "relevance" && words >> model >> batch >> jobs >> seconds >> with)
    return {{"rate", relevance(model, batch, jobs, seconds, with == "inputs")}};
  if (what == "profile" && words >> model >> batch) return profile(model, batch);
  if (what == "flops" && words >> model) return {{"flops", flops(model)}};
  if (what == "pass" && words >> model >> data >> jobs >> with) return pass(model, data, jobs, with == "spectra");
  if (what == "peak" && words >> seconds) return {{"flops", peak_flops(seconds)}};
  return {{"error", "not understood: " + line}};
}

}  // namespace
}  // namespace netmend::bench

int main() {
  netmend::executor::start_runtime();
  for (std::string line; std::getline(std::cin, line);) std::cout << netmend::bench::answer(line).dump() << std::endl;
}
