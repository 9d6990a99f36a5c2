#include "session/benchmark.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/pool.h"
#include "executor/cost.h"
#include "executor/peak.h"
#include "executor/runtime.h"
#include "observers/predictions.h"
#include "session/latency.h"
#include "session/split.h"

namespace netmend::session {
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kTableBatch = 64, kTableBatchOnDevice = 1024;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A batch of real inputs where the network takes them.
Tensors some_inputs(const stream::Subject& subject, int64_t batch) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < batch; ++i) samples.push_back(i % subject.data->size());
  Tensors inputs;
  for (const at::Tensor& input : subject.feed.inputs(subject.data->read(samples)))
    inputs.push_back(input.to(subject.device));
  executor::finish_device_work();
  return inputs;
}

double bytes_of(std::span<const at::Tensor> tensors) {
  double bytes = 0;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) bytes += double(tensor.nbytes());
  return bytes;
}

/// Multiply-adds by the name of the node, times two, of one input: as in the file, where nothing runs together.
std::map<std::string, double> flops_by_node(const stream::Subject& subject, model::ValueId output) {
  const model::Graph& graph = subject.batching.graph;
  executor::Request request;
  request.wanted = {output}, request.mode = executor::Mode::kPlain;
  const int64_t batch = subject.batching.kind == executor::Batching::kFixed ? subject.batching.size : 1;
  std::map<std::string, double> found;
  executor::RunOptions options;
  options.trace = [&](int node, std::span<const at::Tensor> in, std::span<const at::Tensor> out) {
    const model::Node& at = graph.nodes[size_t(node)];
    found[at.name] += 2 * executor::multiply_adds(at.op, in, out) / double(batch);
  };
  executor::Executor(graph, request)
      .run(subject.feed.inputs(subject.data->read(std::vector<int64_t>(size_t(batch), int64_t(0)))), options);
  return found;
}

std::vector<OperatorCost> operator_costs(const executor::Executor& executor, const Tensors& inputs,
                                         const std::map<std::string, double>& flops, double seconds) {
  std::map<int, OperatorCost> found;
  const double batch = double(inputs.at(0).size(0));
  Clock::time_point last;
  executor::RunOptions options;
  options.trace = [&](int node, std::span<const at::Tensor> in, std::span<const at::Tensor> out) {
    executor::finish_device_work();
    OperatorCost& cost = found[node];
    cost.seconds += since(last);
    if (cost.name.empty()) {
      const std::string name = executor.node_name(node);  // NAME (OPERATOR)
      const size_t at = name.rfind(" (");
      cost.name = name.substr(0, at), cost.op = name.substr(at + 2, name.size() - at - 3);
      if (auto hit = flops.find(cost.name); hit != flops.end()) cost.flops = hit->second;
      cost.bytes = (bytes_of(in) + bytes_of(out)) / batch;
    }
    last = Clock::now();
  };
  executor.run(inputs);  // the first run prepares kernels
  executor::finish_device_work();
  int64_t runs = 0;
  for (const auto start = Clock::now(); runs < 3 || (since(start) < seconds && runs < 200); ++runs) {
    stop_if_interrupted();
    last = Clock::now(), executor.run(inputs, options);
  }
  std::vector<OperatorCost> list;
  for (auto& [node, cost] : found) {
    cost.seconds /= double(runs) * batch;
    list.push_back(std::move(cost));
  }
  return list;
}

/// Until Ctrl-C.
void wait(double seconds) {
  for (const auto start = Clock::now(); since(start) < seconds && !interrupted();)
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(0.05, seconds)));
}

/// Forward passes of all workers, each on the same inputs again and again.
double forward_rate(const executor::Executor& executor, const Tensors& inputs, int workers, double seconds) {
  std::atomic<int64_t> done{0};
  std::atomic<bool> counting{false}, stop{false};
  const int64_t batch = inputs.at(0).size(0);
  std::exception_ptr failed;
  std::atomic<bool> fails{false};
  auto work = [&] {
    try {
      executor::enter_worker();
      at::NoGradGuard no_grad;
      while (!stop && !interrupted()) {
        executor.run(inputs);
        executor::finish_device_work();
        if (counting) done += batch;
      }
    } catch (...) {
      if (!fails.exchange(true)) failed = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < workers; ++i) threads.emplace_back(work);
  } catch (const std::exception&) {
    stop = true;
    for (std::thread& thread : threads) thread.join();
    throw InputError(fmt::format("{} threads cannot be started", workers), "--jobs N starts fewer.");
  }
  wait(seconds / 4);
  counting = true;
  const auto start = Clock::now();
  wait(seconds);
  counting = false;
  const double spent = since(start);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  if (failed) std::rethrow_exception(failed);
  stop_if_interrupted();
  return double(done) / spent;
}

/// The largest product that a GPU does in float32 (or as --precision says), or what all workers' FMAs come to.
double machine_peak(at::Device device, int workers) {
  if (device.is_cpu()) return executor::peak_flops(0.3) * workers;
  const int64_t size = 8192;
  at::Tensor a = at::rand({size, size}, at::TensorOptions(device).dtype(executor::pass_precision())),
             b = at::rand_like(a);
  for (int i = 0; i < 2; ++i) at::mm(a, b);
  executor::finish_device_work();
  const auto start = Clock::now();
  constexpr int kRuns = 5;
  for (int i = 0; i < kRuns; ++i) at::mm(a, b);
  executor::finish_device_work();
  return 2.0 * double(size) * double(size) * double(size) * kRuns / since(start);
}

/// Inputs per second of a pass that judges every prediction, as `eval` does: the median of three.
double pass_rate(Session& session, const stream::Subject& subject) {
  observers::Predictions predictions(session.task(), false);
  std::vector<double> rates;
  for (int i = 0; i < 3; ++i) {
    stream::PassOptions options = session.pass_options();
    options.quiet = true;
    const stream::PassResult done = stream::run_pass(subject, {&predictions}, options);
    if (done.interrupted) throw Interrupted{};
    rates.push_back(double(done.samples) / done.seconds);
  }
  std::sort(rates.begin(), rates.end());
  return rates[1];
}

/// The data set with what a pass reads of it held in memory.
std::shared_ptr<const dataset::Dataset> in_memory(const std::shared_ptr<const dataset::Dataset>& data) {
  class Held : public dataset::Dataset {
   public:
    explicit Held(const dataset::Dataset& data) {
      info_ = data.info();
      std::vector<int64_t> all = stream::spread(data.size(), data.size());
      whole_ = data.read(all);
    }
    dataset::Batch read(std::span<const int64_t> samples) const override {
      const at::Tensor which = at::tensor(at::ArrayRef<int64_t>(samples.data(), samples.size()), at::kLong);
      auto pick = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.index_select(0, which) : tensor; };
      dataset::Batch batch;
      for (const at::Tensor& input : whole_.inputs) batch.inputs.push_back(pick(input));
      for (const at::Tensor& mask : whole_.masks) batch.masks.push_back(pick(mask));
      batch.labels = pick(whole_.labels);
      batch.samples.assign(samples.begin(), samples.end());
      return batch;
    }
    dataset::Display display(int64_t) const override { return {}; }

   private:
    dataset::Batch whole_;
  };
  return std::make_shared<Held>(*data);
}

}  // namespace

const Rate& Benchmark::best() const {
  return *std::max_element(rates.begin(), rates.end(),
                           [](const Rate& a, const Rate& b) { return a.inputs_per_second < b.inputs_per_second; });
}

Benchmark measure_speed(Session& session, double seconds) {
  const stream::Subject& subject = session.test().subject;
  const observers::PredictionSettings& task = session.task();
  const bool on_gpu = !subject.device.is_cpu();
  Benchmark out;
  out.device = subject.device.str();
  out.workers = session.request().jobs > 0 ? session.request().jobs : cores();
  for (model::ValueId id : executor::find_parameters(subject.graph)) {
    const at::Tensor& value = subject.graph.constant(id);
    out.parameters += value.numel(), out.weight_bytes += double(value.nbytes());
  }
  at::NoGradGuard no_grad;
  const executor::Executor executor(subject.batching.graph, subject.request({task.head.output}));
  const bool any = subject.batching.kind == executor::Batching::kAny;
  const int64_t own = subject.batching.kind == executor::Batching::kOne ? 1 : subject.batch_size();
  out.batch = any ? on_gpu ? kTableBatchOnDevice : kTableBatch : own;
  const std::map<std::string, double> flops = flops_by_node(subject, task.head.output);
  for (const auto& [node, own] : flops) out.flops += own;
  out.operators = operator_costs(executor, some_inputs(subject, out.batch), flops, seconds);
  out.latency_ms = measure_latency(session).median.value;
  // On a GPU a few workers hide what the CPU does; more only wait for each other.
  const int workers = on_gpu ? std::min(out.workers, 4) : out.workers;
  std::vector<int64_t> batches =
      on_gpu ? std::vector<int64_t>{1, 64, 256, 1024, 4096} : std::vector<int64_t>{1, 16, 32, 64, 256};
  for (int64_t batch : any ? batches : std::vector<int64_t>{own}) {
    if (!out.rates.empty() && double(batch) * subject.cost > 2e12) continue;
    out.rates.push_back({batch, forward_rate(executor, some_inputs(subject, batch), workers, seconds)});
  }
  out.peak_memory =
      on_gpu ? double(executor::device_memory() - executor::device_memory_free()) : double(executor::memory_peak());
  out.inputs = subject.data->size();
  stream::Subject fresh = subject;
  fresh.kept = nullptr;
  out.from_file = pass_rate(session, fresh);
  if (!on_gpu) fresh.data = in_memory(subject.data);
  out.from_memory = pass_rate(session, on_gpu ? subject : fresh);
  out.peak_flops = machine_peak(subject.device, out.workers);
  return out;
}

nlohmann::ordered_json to_json(const Benchmark& b) {
  using Json = nlohmann::ordered_json;
  Json operators = Json::array(), rates = Json::array();
  for (const OperatorCost& one : b.operators)
    operators.push_back({{"name", one.name},
                         {"op", one.op},
                         {"seconds_per_input", one.seconds},
                         {"flops_per_input", one.flops},
                         {"bytes_per_input", one.bytes}});
  for (const Rate& rate : b.rates)
    rates.push_back({{"batch", rate.batch}, {"inputs_per_second", rate.inputs_per_second}});
  return {{"device", b.device},
          {"workers", b.workers},
          {"parameters", b.parameters},
          {"weight_bytes", b.weight_bytes},
          {"flops_per_input", b.flops},
          {"peak_flops", b.peak_flops},
          {"peak_memory_bytes", b.peak_memory},
          {"latency_ms", b.latency_ms},
          {"best_batch", b.best().batch},
          {"rates", rates},
          {"pass", {{"inputs", b.inputs}, {"from_file", b.from_file}, {"from_memory", b.from_memory}}},
          {"operator_batch", b.batch},
          {"operators", operators}};
}

}  // namespace netmend::session
