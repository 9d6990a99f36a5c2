#include "training/step.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "executor/device_graph.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "model/guard.h"
#include "ops/input_lanes.h"
#include "ops/vector_clones.h"
#include "training/all_reduce.h"
#include "training/lane_network.h"
#include "training/optimiser.h"
#include "training/thread_pool.h"

namespace netmend::training {
namespace {

constexpr int64_t kMostParts = 8, kLeastInputs = 16, kManyInputs = 32;
constexpr double kLeastProducts = 4e6;  ///< of a part's forward pass: some hundred microseconds
constexpr double kManyProducts = 4e7;   ///< so many that starting a part is nothing beside them
constexpr int64_t kMostGroups = 32;     ///< parts of a network in lanes, which starts with a few microseconds
constexpr int64_t kLeastBatch = ops::kInputs / 2;  ///< fewer inputs leave most lanes empty
constexpr int64_t kAloneBelow = 1 << 15;           ///< parameters that one thread updates sooner than others wake up
constexpr size_t kMostQueued = 32;                 ///< steps of a GPU whose results wait to be looked at

NETMEND_VECTOR_CLONES void add_to(float* __restrict sum, const float* __restrict part, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
}

/// In one order, so that no number of workers changes a bit.
double norm_of(const at::Tensor& gradient) {
  double squares = 0;
  const float* values = gradient.data_ptr<float>();
  for (int64_t i = 0; i < gradient.numel(); ++i) squares += double(values[i]) * values[i];
  return std::sqrt(squares);
}

/// A piece of one parameter, small enough to stay in the cache while it is folded and updated.
struct Segment {
  size_t slot;
  int64_t from, count;  ///< within the parameter
};

std::vector<Segment> cut(const std::vector<Slot>& slots, int64_t total) {
  const int64_t size = std::max<int64_t>(8192, total / 4096);
  std::vector<Segment> segments;
  for (size_t s = 0; s < slots.size(); ++s)
    for (int64_t from = 0; from < slots[s].count; from += size)
      segments.push_back({s, from, std::min(size, slots[s].count - from)});
  return segments;
}

bool has_batch_norm(const model::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const auto& n) { return n.op == "BatchNormalization"; });
}

bool has_fixed_sizes(const dataset::Info& info) {
  return std::all_of(info.features.begin(), info.features.end(), [](const dataset::Feature& feature) {
    return std::find(feature.shape.begin(), feature.shape.end(), -1) == feature.shape.end();
  });
}

executor::Request training_request(const model::Graph& graph, model::ValueId wanted, const Parameters& parameters) {
  executor::Request request;
  request.given = graph.inputs;
  for (const Slot& slot : parameters.slots()) request.given.push_back(slot.id);
  for (model::ValueId id : parameters.statistics_ids()) request.given.push_back(id);
  request.wanted = {wanted};
  request.mode = executor::Mode::kPlain;
  request.device = parameters.values().device();
  return request;
}

}  // namespace

/// A part of 16 inputs of a small network spends a fifth of its time on starting operators, one of 32 a tenth: there
/// may be two of the former where there would be only one of the latter.
int parts_of(int64_t inputs, const Work& work, bool lanes) {
  if (lanes) {
    const int64_t groups = (inputs + ops::kInputs - 1) / ops::kInputs;
    const double worth = double(inputs) * work.products / kLeastProducts;
    return int(std::clamp<int64_t>(int64_t(std::min(worth, double(kMostGroups))), 1, std::max<int64_t>(1, groups)));
  }
  auto parts_at_least = [&](int64_t least, double products) {
    double worth = double(inputs) * work.products / products;
    return std::min(inputs / least, int64_t(std::min(worth, double(kMostParts))));
  };
  int64_t two = std::min<int64_t>(2, parts_at_least(kLeastInputs, kLeastProducts));
  int64_t more = std::max(parts_at_least(kManyInputs, kLeastProducts), parts_at_least(kLeastInputs, kManyProducts));
  return int(std::clamp<int64_t>(std::max(two, more), 1, kMostParts));
}

struct Stepper::Impl {
  Impl(const model::Graph& network, model::ValueId output, Parameters& all, LossForm form, const Options& how,
       const Work& about)
      : graph(network),
        wanted(output),
        parameters(all),
        loss(form),
        work(about),
        options(how),
        executor(graph, training_request(graph, wanted, all)),
        segments(cut(all.slots(), all.count())),
        norms(has_batch_norm(graph)),
        pool(pool_size(norms, how, about)) {
    gradient = at::zeros_like(all.values());
    if (state_count(how.method) > 0) state.first = at::zeros_like(gradient);
    if (state_count(how.method) > 1) state.second = at::zeros_like(gradient);
    if (!all.values().device().is_cpu()) prepare_device(graph);
  }

  void prepare_device(const model::Graph& graph) {
    executor::enter_worker();  // a stream of this thread's own, as graphs need it
    device = std::make_unique<Device>();
    const at::TensorOptions there(parameters.values().device());
    device->which = at::empty({options.batch + 1}, there.dtype(at::kLong));  // the last batch may be one larger
    device->numbers = at::empty({3}, there.dtype(at::kFloat));
    device->sums = at::empty({3}, there.dtype(at::kDouble));
    device->queued = at::empty({int64_t(kMostQueued), 3}, there.dtype(at::kDouble));
    const bool drops = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                   [](const model::Node& node) { return node.op == "Dropout"; });
    if (drops || !executor::DeviceGraph::available()) device->recorded = -1;
  }

  static int jobs(const Options& how) { return how.jobs > 0 ? how.jobs : cores(); }
  /// Parts that all-reduce the statistics of batch norm must all be under way at once.
  static int pool_size(bool norms, const Options& how, const Work& about) {
    int parts = std::max(parts_of(how.batch + 1, about), parts_of(how.batch + 1, about, true));
    return norms ? std::max(parts, jobs(how)) : std::min(std::max(parts, 2), jobs(how));
  }

  struct Part {
    std::vector<at::Tensor> leaves, gradients;
    at::Tensor flat;  ///< of all gradients, in lanes
    StepResult result;
  };

  Part& part(size_t number) {
    while (parts.size() <= number) {
      parts.emplace_back();
      for (size_t slot = 0; slot < parameters.slots().size(); ++slot)
        parts.back().leaves.push_back(parameters.leaf(slot));
    }
    return parts[number];
  }

  void run_part(Part& part, const Samples& data, std::span<const int64_t> samples, int64_t total, uint64_t seed) {
    Rows rows = data.rows(samples);
    if (lanes) return run_part_in_lanes(part, rows, total, seed);
    std::vector<at::Tensor> given = std::move(rows.inputs);
    given.insert(given.end(), part.leaves.begin(), part.leaves.end());
    given.insert(given.end(), parameters.statistics().begin(), parameters.statistics().end());
    at::Tensor answers = executor.run(given, {.training = true, .seed = seed})[0];
    LossSum sum = loss_of(loss, answers, rows.labels, total);
    part.result = {sum.loss, sum.right};
    if (!answers.requires_grad()) fail("no gradient reaches the weights from the output that is trained");
    at::Tensor gradient = sum.gradient.to(answers.scalar_type()).view(answers.sizes());
    part.gradients = torch::autograd::grad({answers}, part.leaves, {gradient}, false, false, true);
    for (at::Tensor& g : part.gradients)
      if (g.defined()) g = g.contiguous();
  }

  void run_part_in_lanes(Part& part, const Rows& rows, int64_t total, uint64_t seed) {
    if (!part.flat.defined()) {
      part.flat = at::empty_like(gradient);
      for (const Slot& slot : parameters.slots())
        part.gradients.push_back(part.flat.narrow(0, slot.offset, slot.count));
    }
    const LossSum sum = lanes->gradients(rows, loss, total, seed, parameters, part.flat);
    part.result = {sum.loss, sum.right};
  }

  /// Once, when the sizes of the inputs are known.
  void choose_lanes(const Samples& data) {
    if (std::exchange(chosen, true) || options.batch < kLeastBatch || !has_fixed_sizes(data.info()) ||
        !parameters.values().device().is_cpu())
      return;
    const int64_t first = 0;
    const at::Tensor x = data.rows(std::span(&first, 1)).inputs.at(0);
    std::string refusal;
    lanes = LaneNetwork::make(graph, wanted, parameters, x.sizes().slice(1), refusal);
  }

  int parts_for(const Samples& data, int64_t inputs) {
    choose_lanes(data);
    return parameters.values().device().is_cpu() ? parts_of(inputs, work, lanes != nullptr) : 1;
  }

  /// Where a part begins. In lanes all but the last are whole groups of inputs.
  int64_t place_of(int number, int count, int64_t total) const {
    if (!lanes) return total * number / count;
    return std::min(total, (total + ops::kInputs - 1) / ops::kInputs * number / count * ops::kInputs);
  }

  void run_parts(const Samples& data, std::span<const int64_t> samples, int count) {
    part(size_t(count) - 1);
    const int64_t total = int64_t(samples.size());
    AllReduce all_reduce(count, jobs(options));
    auto body = [&](int number) {
      int64_t from = place_of(number, count, total), to = place_of(number + 1, count, total);
      uint64_t seed = Random::hash(options.seed ^ Random::hash(uint64_t(state.steps) * 64 + uint64_t(number)));
      auto compute = [&] {
        model::guarded([] { return std::string("training"); },
                       [&] {
                         run_part(parts[size_t(number)], data, samples.subspan(size_t(from), size_t(to - from)), total,
                                  seed);
                       });
      };
      if (norms)
        all_reduce.attend(number, compute);
      else
        compute();
    };
    pool.run(count, body);
  }

  int64_t place(const Segment& segment) const { return parameters.slots()[segment.slot].offset + segment.from; }

  /// Adds up the parts' gradients.
  void fold_segment(const Segment& segment, int count) {
    float* sum = gradient.data_ptr<float>() + place(segment);
    bool first = true;
    for (int number = 0; number < count; ++number) {
      const at::Tensor& g = parts[size_t(number)].gradients[segment.slot];
      if (!g.defined()) continue;
      const float* values = g.data_ptr<float>() + segment.from;
      if (first)
        std::memcpy(sum, values, size_t(segment.count) * sizeof(float));
      else
        add_to(sum, values, segment.count);
      first = false;
    }
    if (first) std::fill_n(sum, segment.count, 0.0f);
  }

  void update_segment(const Segment& segment, const StepForm& form) {
    const int64_t at = place(segment);
    auto memory = [&](const at::Tensor& t) { return t.defined() ? t.data_ptr<float>() + at : nullptr; };
    update(form, parameters.values().data_ptr<float>() + at, gradient.data_ptr<float>() + at, memory(state.first),
           memory(state.second), segment.count);
  }

  /// The norm is that of all parameters, so that every gradient must be there before the first is used.
  void restrain() {
    if (options.clip > 0 && !gradient.device().is_cpu()) {  // without waiting for the norm
      const at::Tensor norm = gradient.to(at::kDouble).norm();
      gradient.mul_(at::where(norm > options.clip, options.clip / norm, at::ones_like(norm)).to(at::kFloat));
    } else if (options.clip > 0) {
      const double norm = norm_of(gradient);
      if (norm > options.clip) gradient.mul_(options.clip / norm);
    }
    if (options.l1 > 0) gradient.add_(parameters.values().sign(), options.l1);
  }

  /// A GPU takes the whole batch at once, and the rule of the optimiser all parameters. Nothing here waits for it: what
  /// differs from step to step is read from memory there, so that a step can be recorded and started as a whole.
  struct Device {
    at::Tensor which;    ///< the samples of the step
    at::Tensor numbers;  ///< step_numbers()
    at::Tensor sums;     ///< of the last step, as loss_on_device() tells them
    at::Tensor queued;   ///< those of the steps since take()
    size_t count = 0;    ///< of them
    executor::DeviceGraph graph;
    int64_t recorded = 0;  ///< inputs of the step in the graph; 0 while there is none, -1 where there can be none
    int steps_alike = 0;   ///< of the same size, one after the other
  };

  void forward_and_back(const Rows& rows, int64_t total, uint64_t seed) {
    Part& own = part(0);
    std::vector<at::Tensor> given = rows.inputs;
    given.insert(given.end(), own.leaves.begin(), own.leaves.end());
    given.insert(given.end(), parameters.statistics().begin(), parameters.statistics().end());
    at::Tensor answers = executor.run(given, {.training = true, .seed = seed})[0];
    const LossOnDevice found = loss_on_device(loss, answers, rows.labels, total);
    device->sums.copy_(found.sums);
    if (!answers.requires_grad()) fail("no gradient reaches the weights from the output that is trained");
    const at::Tensor back = found.gradient.to(answers.scalar_type()).view(answers.sizes());
    const std::vector<at::Tensor> gradients = torch::autograd::grad({answers}, own.leaves, {back}, false, false, true);
    std::vector<at::Tensor> flat;
    for (size_t slot = 0; slot < gradients.size(); ++slot)
      flat.push_back(gradients[slot].defined() ? gradients[slot].reshape({-1})
                                               : at::zeros_like(own.leaves[slot]).reshape({-1}));
    at::cat_out(gradient, flat);
  }

  void work_on_device(const Samples& data, std::span<const int64_t> samples, const StepForm& form) {
    const uint64_t seed = Random::hash(options.seed ^ Random::hash(uint64_t(state.steps) * 64));
    const int64_t total = int64_t(samples.size());
    model::guarded([] { return std::string("training"); },
                   [&] {
                     forward_and_back(data.kept() ? data.rows(device->which.narrow(0, 0, total)) : data.rows(samples),
                                      total, seed);
                   });
    at::NoGradGuard no_grad;
    restrain();
    if (!update_by_kernel(form, parameters.values(), gradient, state.first, state.second, device->numbers))
      update(form, parameters.values(), gradient, state.first, state.second), device->recorded = -1;
  }

  /// Steps of one size are recorded once a few of them have gone before: the first wake libraries and compile kernels.
  /// Not where the work differs from step to step (masks of dropout) or inputs come from the CPU.
  void step_on_device(const Samples& data, std::span<const int64_t> samples, const StepForm& form) {
    constexpr int kWarmUp = 3;
    const int64_t total = int64_t(samples.size());
    if (!data.kept()) device->recorded = -1;
    const at::Tensor which = at::from_blob(const_cast<int64_t*>(samples.data()), {total}, at::kLong);
    std::array<float, 3> values = step_numbers(form);
    device->which.narrow(0, 0, total).copy_(which, true);
    device->numbers.copy_(at::from_blob(values.data(), {3}, at::kFloat), true);
    auto work = [&] { work_on_device(data, samples, form); };
    if (device->recorded == 0 && total == options.batch && ++device->steps_alike > kWarmUp)
      device->recorded = device->graph.record(work) ? total : -1;
    try {
      if (device->recorded == total)
        device->graph.run();
      else
        work();
    } catch (const model::DeviceMemoryError&) {
      throw InputError(fmt::format("the GPU's memory does not hold a step with {} inputs", total),
                       "Try a smaller --batch, or --device cpu.");
    }
    device->queued[int64_t(device->count++)].copy_(device->sums);
  }

  void queue(const Samples& data, std::span<const int64_t> samples, double rate) {
    if (device) {
      check(device->count < kMostQueued, "results are taken before there is no room for more");
      step_on_device(data, samples, {options.method, rate, options.momentum, options.decay, ++state.steps});
    } else {
      results.push_back(step_on_cpu(data, samples, rate));
    }
  }

  std::vector<StepResult> take() {
    if (!device) return std::exchange(results, {});
    const at::Tensor sums = device->queued.narrow(0, 0, int64_t(std::exchange(device->count, 0))).to(at::kCPU);
    std::vector<StepResult> found;
    for (int64_t i = 0; i < sums.size(0); ++i) {
      const LossSum one = read_sums(loss, sums[i].data_ptr<double>());
      found.push_back({one.loss, one.right});
    }
    return found;
  }

  StepResult step_on_cpu(const Samples& data, std::span<const int64_t> samples, double rate) {
    ++state.steps;
    const int count = parts_for(data, int64_t(samples.size()));
    run_parts(data, samples, count);
    StepForm form{options.method, rate, options.momentum, options.decay, state.steps};
    auto every = [&](const std::function<void(int)>& body) {
      if (parameters.count() < kAloneBelow)
        for (size_t i = 0; i < segments.size(); ++i) body(int(i));
      else
        pool.run(int(segments.size()), body);
    };
    if (options.clip > 0 || options.l1 > 0) {
      every([&](int i) { fold_segment(segments[size_t(i)], count); });
      at::NoGradGuard no_grad;
      restrain();
      every([&](int i) { update_segment(segments[size_t(i)], form); });
    } else {
      every([&](int i) { fold_segment(segments[size_t(i)], count), update_segment(segments[size_t(i)], form); });
    }
    StepResult sum;
    for (int number = 0; number < count; ++number) {
      sum.loss += parts[size_t(number)].result.loss;
      sum.right += parts[size_t(number)].result.right;
      if (!lanes) parts[size_t(number)].gradients.clear();
    }
    return sum;
  }

  model::Graph graph;
  model::ValueId wanted;
  Parameters& parameters;
  LossForm loss;
  Work work;
  Options options;
  executor::Executor executor;
  bool chosen = false;
  std::unique_ptr<LaneNetwork> lanes;  ///< null where the executor runs the network
  std::vector<Segment> segments;
  bool norms;
  ThreadPool pool;
  std::vector<Part> parts;
  at::Tensor gradient;
  OptimiserState state;
  std::unique_ptr<Device> device;   ///< null on the CPU
  std::vector<StepResult> results;  ///< of the CPU, since take()
};

Stepper::Stepper(const model::Graph& graph, model::ValueId wanted, Parameters& parameters, LossForm loss,
                 const Options& options, const Work& work)
    : impl_(std::make_unique<Impl>(graph, wanted, parameters, loss, options, work)) {}
Stepper::~Stepper() = default;

int Stepper::parts(const Samples& data, int64_t inputs) { return impl_->parts_for(data, inputs); }

StepResult Stepper::step(const Samples& data, std::span<const int64_t> samples, double rate) {
  impl_->queue(data, samples, rate);
  return impl_->take().back();
}
void Stepper::queue(const Samples& data, std::span<const int64_t> samples, double rate) {
  impl_->queue(data, samples, rate);
}
std::vector<StepResult> Stepper::take() { return impl_->take(); }
void Stepper::drop() {
  impl_->results.clear();
  if (impl_->device) impl_->device->count = 0;
}
size_t Stepper::most_queued() const { return impl_->device ? kMostQueued : 1; }
OptimiserState& Stepper::state() { return impl_->state; }
const at::Tensor& Stepper::gradient() const { return impl_->gradient; }

}  // namespace netmend::training
