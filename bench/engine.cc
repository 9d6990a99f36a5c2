// Answers one request a line: `forward MODEL BATCH JOBS SECONDS`, `peak SECONDS`, `flops MODEL`, `profile MODEL BATCH`,
// `pass MODEL DATA JOBS plain|spectra`, `whatif MODEL DATA LIMIT LAYERS JOBS`, `patches MODEL DATA LIMIT WEIGHTS COUNT
// JOBS`, `mutants MODEL DATA LIMIT COUNT OPERATORS JOBS`, `relevance MODEL BATCH JOBS ROUNDS layers|inputs`, `criteria
// MODEL TRAIN TEST JOBS plain|all`, `surprise MODEL TRAIN TEST JOBS`. Numbers come back as JSON. Called with a device,
// and a precision of its products, what-if runs there.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "adequacy/learn.h"
#include "executor/executor.h"
#include "executor/peak.h"
#include "executor/runtime.h"
#include "explain/relevance.h"
#include "localise/candidates.h"
#include "localise/ranking.h"
#include "observers/coverage/kmnc.h"
#include "observers/coverage/mcdc.h"
#include "observers/coverage/nbc_snac.h"
#include "observers/coverage/nc.h"
#include "observers/coverage/nlc.h"
#include "observers/coverage/tknc.h"
#include "observers/coverage/tknp.h"
#include "observers/surprise/dsa.h"
#include "observers/surprise/lsa.h"
#include "onnx/reader.h"
#include "stream/layers.h"
#include "stream/pass.h"
#include "whatif.h"

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

/// Inputs per second, all workers together, after a warm-up.
double forward(const std::string& path, int64_t batch, int jobs, double seconds) {
  model::Graph graph = onnx::read_model(path);
  executor::Executor executor(graph);
  std::vector<at::Tensor> inputs = random_inputs(graph, batch);
  std::atomic<int64_t> done{0};
  std::atomic<bool> counting{false}, stop{false};
  auto work = [&] {
    executor::enter_worker();
    at::NoGradGuard no_grad;
    while (!stop) {
      executor.run(inputs);
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

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// What relevance costs in forward passes, in processor time, one figure per round; in every round each worker does
/// both in turn. Of all hidden layers, the first one included; or of the inputs.
std::vector<double> relevance(const std::string& path, int64_t batch, int jobs, int64_t rounds, bool to_inputs) {
  model::Graph graph = onnx::read_model(path);
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  std::vector<model::ValueId> wanted = graph.inputs;
  if (!to_inputs) {
    wanted.clear();
    for (const model::Layer& layer : executor::find_layers(graph))
      if (layer.post != head.logits) wanted.push_back(layer.post);
  }
  executor::Executor executor(graph);
  explain::Explainer explainer(graph, head, wanted);
  std::vector<at::Tensor> inputs = random_inputs(graph, batch);
  std::vector<double> ratios;
  for (int64_t round = -1; round < rounds; ++round) {  // the first one warms up
    std::atomic<double> plain{0}, explained{0};
    auto work = [&] {
      executor::enter_worker();
      at::NoGradGuard no_grad;
      double forward = 0, with = 0;
      while (forward < 0.15) {
        double start = processor_seconds();
        executor.run(inputs);
        double middle = processor_seconds();
        explainer.run(inputs);
        forward += middle - start;
        with += processor_seconds() - middle;
      }
      plain += forward;
      explained += with;
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < jobs; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    if (round >= 0) ratios.push_back(explained / plain);
  }
  return ratios;
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

/// Microseconds per input in each kind of operator, of the graph as it runs.
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

/// Seconds, and processor seconds of all threads, of a pass that judges every prediction; with `spectra`, one that also
/// counts them for all units and ranks the units by every measure.
nlohmann::json pass(const std::string& path, const std::string& spec, int jobs, bool spectra) {
  model::Graph graph = onnx::read_model(path);
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  std::shared_ptr<const dataset::Dataset> data = dataset::open(spec);
  stream::Subject subject(path, std::move(graph), data, {head.output, head.logits});
  dataset::Batch few = data->read(stream::spread(data->size(), 64));
  auto settings =
      observers::infer_task(subject.graph, head, data->info(), few, stream::run_few(subject, {head.output}, few)[0]);
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

/// A model with training and test data, ready for passes.
struct Adequacy {
  std::optional<stream::Subject> training, tests;
  observers::PredictionSettings settings;
  observers::SpacePtr space;
  stream::PassOptions options;

  Adequacy(const std::string& path, const std::string& train, const std::string& test, int jobs) {
    model::Graph graph = onnx::read_model(path);
    executor::Head head = executor::find_head(graph, graph.outputs[0]);
    std::vector<model::ValueId> wanted{head.output, head.logits};
    training.emplace(path, graph, std::shared_ptr<const dataset::Dataset>(dataset::open(train)), wanted);
    tests.emplace(path, graph, std::shared_ptr<const dataset::Dataset>(dataset::open(test)), wanted);
    dataset::Batch few = tests->data->read(stream::spread(tests->data->size(), 64));
    settings =
        observers::infer_task(graph, head, tests->data->info(), few, stream::run_few(*tests, {head.output}, few)[0]);
    space = std::make_shared<observers::UnitSpace>(
        localise::candidates(stream::find_layers(*tests), graph, head, settings.outputs));
    options.jobs = jobs;
    options.quiet = true;
  }
  observers::Profile learn() const {
    adequacy::LearnOptions how;
    how.pass = options;
    how.importance = false;
    return adequacy::learn(*training, settings, space, space->layers().size() - 1, how).profile;
  }
};

template <typename T>
std::shared_ptr<const observers::Criterion> shared(T criterion) {
  return std::make_shared<T>(std::move(criterion));
}

/// Passes over training and test data that judge every prediction; or that profile the former and measure the
/// coverage of the latter by every criterion but surprise and importance.
nlohmann::json criteria(const std::string& path, const std::string& train, const std::string& test, int jobs,
                        bool all) {
  Adequacy about(path, train, test, jobs);
  auto start = Clock::now();
  std::clock_t spent = std::clock();
  double value = 0;
  if (all) {
    observers::Profile profile = about.learn();
    const observers::SpacePtr& space = about.space;
    observers::RangesPtr ranges = profile.ranges();
    observers::Criteria observer(
        about.settings, space,
        {shared(observers::Nc(space)), shared(observers::Kmnc(space, ranges)), shared(observers::Nbc(space, ranges)),
         shared(observers::Snac(space, ranges)), shared(observers::Tknc(space)), shared(observers::Tknp(space)),
         shared(observers::Mcdc(space)), shared(observers::Nlc(space))});
    stream::PassResult done = stream::run_pass(*about.tests, {&observer}, about.options);
    const auto& state = dynamic_cast<observers::CriteriaState&>(*done.collected[0].pieces[0].state);
    for (size_t i = 0; i < observer.list().size(); ++i) value += observer.list()[i]->figure(*state.tallies[i]).value;
  } else {
    observers::Predictions predictions(about.settings, false);
    for (const stream::Subject* subject : {&*about.training, &*about.tests})
      stream::run_pass(*subject, {&predictions}, about.options);
  }
  return {{"seconds", std::chrono::duration<double>(Clock::now() - start).count()},
          {"processor", double(std::clock() - spent) / CLOCKS_PER_SEC},
          {"value", value}};
}

/// Surprise of the tests by distance and by likelihood (with its least value on training data), from traces that are
/// there.
nlohmann::json surprise(const std::string& path, const std::string& train, const std::string& test, int jobs) {
  Adequacy about(path, train, test, jobs);
  observers::Profile profile = about.learn();
  const size_t layer = about.space->layers().size() - 1;
  observers::Criteria observer(about.settings, about.space,
                               {shared(observers::Traces(about.space, layer, layer + 1, about.tests->data->size()))});
  stream::PassResult done = stream::run_pass(*about.tests, {&observer}, about.options);
  const auto& state = dynamic_cast<observers::CriteriaState&>(*done.collected[0].pieces[0].state);
  const auto classes = int64_t(about.settings.classes.size());
  auto start = Clock::now();
  std::clock_t spent = std::clock();
  auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  observers::ClassTraces known = observers::sort_by_class(profile.traces(), classes, false),
                         asked = observers::sort_by_class(
                             dynamic_cast<const observers::TraceTally&>(*state.tallies[0]).kept, classes, false);
  observers::Dsa(known).scores(asked, jobs);
  const double distance = since();
  observers::Lsa likelihood(known);
  likelihood.scores(asked, jobs);
  likelihood.scores(known, jobs);
  return {{"seconds", since()},
          {"distance", distance},
          {"processor", double(std::clock() - spent) / CLOCKS_PER_SEC},
          {"units", about.space->units(layer)}};
}

nlohmann::json answer(const std::string& line) {
  std::istringstream words(line);
  std::string what, model, data, test, with;
  int64_t batch = 0, rounds = 0;
  int jobs = 0;
  double seconds = 0;
  words >> what;
  if (what == "forward" && words >> model >> batch >> jobs >> seconds)
    return {{"rate", forward(model, batch, jobs, seconds)}};
  if (what == "relevance" && words >> model >> batch >> jobs >> rounds >> with)
    return {{"ratios", relevance(model, batch, jobs, rounds, with == "inputs")}};
  if (what == "profile" && words >> model >> batch) return profile(model, batch);
  if (what == "flops" && words >> model) return {{"flops", flops(model)}};
  if (what == "pass" && words >> model >> data >> jobs >> with) return pass(model, data, jobs, with == "spectra");
  if (what == "criteria" && words >> model >> data >> test >> jobs >> with)
    return criteria(model, data, test, jobs, with == "all");
  if (what == "surprise" && words >> model >> data >> test >> jobs) return surprise(model, data, test, jobs);
  if (int count = 0, more = 0; what == "whatif" && words >> model >> data >> batch >> count >> jobs)
    return whatif(model, data, batch, count, jobs);
  else if (what == "patches" && words >> model >> data >> batch >> count >> more >> jobs)
    return patches(model, data, batch, count, more, jobs);
  if (int count = 0; what == "mutants" && words >> model >> data >> batch >> count >> with >> jobs)
    return mutants(model, data, batch, count, with, jobs);
  if (what == "peak" && words >> seconds) return {{"flops", executor::peak_flops(seconds)}};
  return {{"error", "not understood: " + line}};
}

}  // namespace
}  // namespace netmend::bench

int main(int argc, char** argv) {
  netmend::executor::start_runtime();
  if (argc > 1) netmend::bench::device = netmend::executor::check_device(argv[1]);
  netmend::executor::use_device(netmend::bench::device, argc > 2 ? argv[2] : "float32");
  for (std::string line; std::getline(std::cin, line);) std::cout << netmend::bench::answer(line).dump() << std::endl;
}
