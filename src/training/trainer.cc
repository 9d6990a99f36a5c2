#include "training/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "executor/batching.h"
#include "executor/executor.h"
#include "executor/layers.h"
#include "model/guard.h"
#include "stream/feed.h"
#include "training/checkpoint.h"
#include "training/parameters.h"
#include "training/prepare.h"
#include "training/run_record.h"
#include "training/samples.h"
#include "training/step.h"
#include "training/validation.h"

namespace netmend::training {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The network made to run at any batch size; training splits batches, so nothing less will do.
model::Graph any_batch(const Task& task, const executor::Head& head, const std::vector<at::Tensor>& inputs) {
  executor::Batching batching = executor::find_batching(task.graph, inputs, {head.output, head.logits});
  if (batching.kind != executor::Batching::kAny)
    throw Unsupported(fmt::format("{} cannot be trained: it does not take arbitrary batch sizes", task.model_name),
                      batching.note.empty() ? "Export it with a symbolic batch axis." : batching.note);
  return std::move(batching.graph);
}

int64_t width_of(const model::Graph& graph, const executor::Head& head, const std::vector<at::Tensor>& inputs) {
  at::NoGradGuard no_grad;
  executor::Request request;
  request.wanted = {head.output};
  at::Tensor answers = executor::Executor(graph, request).run(inputs)[0];
  int64_t count = inputs.at(0).size(0);
  if (answers.dim() == 0 || answers.size(0) != count || !answers.is_floating_point())
    fail("output `{}` has the shape {}: one row per input is expected", graph.values[size_t(head.output)].name,
         shape_text({answers.sizes().data(), answers.sizes().size()}));
  return answers.numel() / count;
}

std::string data_text(const std::shared_ptr<const dataset::Dataset>& data) {
  return data ? fmt::format("{} {}", data->info().spec, data->size()) : "none";
}

/// Equal for two tasks exactly when one may go on where the other stopped.
std::string fingerprint(const Task& task, const LossForm& loss, const Parameters& parameters) {
  const Options& o = task.options;
  std::string text = fmt::format("{}|{:a}|{:a}|{:a}|{}|{}|{}|{}|", method_name(o.method), o.rate, o.momentum, o.decay,
                                 schedule_text(o.schedule), loss_name(loss.kind), o.batch, o.seed);
  if (o.l1 != 0 || o.clip != 0) text += fmt::format("{:a}|{:a}|", o.l1, o.clip);
  if (o.schedule.needs_end()) text += fmt::format("{}|", o.epochs);
  text += data_text(task.train) + "|" + data_text(task.validation) + "|";
  for (const model::Node& node : task.graph.nodes) text += node.op + " " + node.name + ";";
  for (const Slot& slot : parameters.slots())
    text += fmt::format("{} {};", task.graph.values[size_t(slot.id)].name, shape_text(slot.shape));
  const at::Tensor start = parameters.values().to(at::kCPU);
  text += checksum(std::string_view(static_cast<const char*>(start.data_ptr()), start.nbytes()));
  return checksum(text);
}

}  // namespace

struct Trainer::Impl {
  explicit Impl(Task given) : task(std::move(given)) {
    check_options(task.options);
    if (task.train->size() == 0) fail("{} holds no inputs", task.train->info().spec);
    head = executor::find_head(task.graph, task.output);
    stream::Feed feed(task.graph, task.model_name, task.train->info());
    notes = feed.notes();
    std::vector<int64_t> first(size_t(std::min<int64_t>(8, task.train->size())));
    std::iota(first.begin(), first.end(), 0);
    std::vector<at::Tensor> inputs = feed.inputs(task.train->read(first));
    graph = any_batch(task, head, inputs);
    loss = infer_loss(task.options.loss, task.train->info(), width_of(graph, head, inputs));
    wanted = loss.kind == LossKind::kMse ? head.output : head.logits;
    const at::Device device(task.options.device);
    parameters = std::make_unique<Parameters>(graph, wanted, device);
    mark = fingerprint(task, loss, *parameters);
    plain = graph;
    pool_before_relu(graph);
    stepper =
        std::make_unique<Stepper>(graph, wanted, *parameters, loss, task.options, measure_work(graph, wanted, inputs));
    int jobs = task.options.jobs > 0 ? task.options.jobs : cores();
    train = std::make_unique<Samples>(task.train, std::move(feed), jobs, samples_limit(), device);
    if (task.validation) {
      infer_loss(loss.kind, task.validation->info(), loss.width);
      stream::Feed other(task.graph, task.model_name, task.validation->info());
      validation = std::make_unique<Samples>(task.validation, std::move(other), jobs, samples_limit(), device);
    }
  }

  /// Everything that a step changes.
  std::vector<at::Tensor> state() {
    std::vector<at::Tensor> all{parameters->values()};
    for (const at::Tensor& tensor : {stepper->state().first, stepper->state().second})
      if (tensor.defined()) all.push_back(tensor);
    all.insert(all.end(), parameters->statistics().begin(), parameters->statistics().end());
    return all;
  }

  /// Where each batch begins, and the end. Batch norm cannot do with one input: such a rest joins the batch before it.
  std::vector<int64_t> batch_bounds() const {
    int64_t size = train->size(), batch = task.options.batch;
    std::vector<int64_t> bounds;
    for (int64_t at = 0; at < size; at += batch) bounds.push_back(at);
    if (!parameters->statistics().empty() && bounds.size() > 1 && size - bounds.back() == 1) bounds.pop_back();
    bounds.push_back(size);
    return bounds;
  }

  void require_finite(double value, int64_t epoch, size_t step, double rate) const {
    if (std::isfinite(value)) return;
    throw Diverged(fmt::format("the loss became {} in epoch {}, step {}: training diverged",
                               std::isnan(value) ? "NaN" : "infinite", epoch, step + 1),
                   fmt::format("Try a smaller --rate (it was {:g}), scaled inputs (scale=1/255), or look for NaN in "
                               "the data.",
                               rate));
  }

  struct Step {
    size_t number = 0;
    double rate = 0;
    std::span<const int64_t> samples;
  };
  /// Steps that were queued, and what they began with.
  struct Queue {
    std::vector<Step> steps;
    std::vector<at::Tensor> before;
    int64_t steps_before = 0;
  };
  using OnStep = std::function<void(int64_t, double)>;

  void add(Queue& queue, const Step& step) {
    if (queue.steps.empty() && stepper->most_queued() > 1) {
      queue.before.clear(), queue.steps_before = stepper->state().steps;
      for (const at::Tensor& tensor : state()) queue.before.push_back(tensor.clone());
    }
    queue.steps.push_back(step);
    stepper->queue(*train, step.samples, step.rate);
  }

  void tell(const Step& step, const StepResult& result, Epoch& epoch, StepResult& sum, const OnStep& on_step) {
    const double mean = result.loss / double(step.samples.size());
    if (record && std::isfinite(mean)) record->after_step(mean, step.rate, stepper->gradient(), step.samples);
    if (record && !std::isfinite(mean)) record->not_finite(mean, step.rate, step.samples);
    require_finite(result.loss, epoch.number, step.number, step.rate);
    sum.loss += result.loss, sum.right += result.right;
    if (on_step) on_step(int64_t(step.samples.size()), mean);
  }

  /// Waits for the queued steps and tells of them. Where one went wrong they are done again one by one, so that the
  /// weights are those of that step when its cause is looked for.
  void settle(Queue& queue, Epoch& epoch, StepResult& sum, const OnStep& on_step) {
    const std::vector<StepResult> results = stepper->take();
    const std::vector<Step> steps = std::exchange(queue.steps, {});
    const bool fine =
        std::all_of(results.begin(), results.end(), [](const StepResult& one) { return std::isfinite(one.loss); });
    if (!fine && steps.size() > 1) restore(queue.before, queue.steps_before);
    for (size_t i = 0; i < steps.size(); ++i)
      tell(steps[i], fine || steps.size() == 1 ? results[i] : stepper->step(*train, steps[i].samples, steps[i].rate),
           epoch, sum, on_step);
  }

  void run_steps(Epoch& epoch, const OnStep& on_step) {
    const std::vector<int64_t> order = epoch_order(train->size(), task.options.seed, epoch.number),
                               bounds = batch_bounds();
    const size_t steps = bounds.size() - 1;
    const double all = double(steps) * double(task.options.epochs);
    StepResult sum;
    Queue queue;
    for (size_t i = 0; i < steps; ++i) {
      if (interrupted()) throw Interrupted{};
      double share = (double(epoch.number - 1) * double(steps) + double(i)) / all;
      epoch.rate = task.options.schedule.rate(task.options.rate, epoch.number - 1, share);
      const bool looked_at = record && record->due(queue.steps.size());
      if (looked_at) settle(queue, epoch, sum, on_step), record->before_step();
      add(queue, {i, epoch.rate, {order.data() + bounds[i], size_t(bounds[i + 1] - bounds[i])}});
      if (looked_at || queue.steps.size() >= stepper->most_queued() || i + 1 == steps)
        settle(queue, epoch, sum, on_step);
    }
    epoch.loss = sum.loss / double(train->size());
    epoch.accuracy = counts_right(loss) ? double(sum.right) / double(train->size()) : kNone;
  }

  void run_epoch(const std::function<void(int64_t, double)>& on_step) {
    std::vector<at::Tensor> before;
    for (const at::Tensor& tensor : state()) before.push_back(tensor.clone());
    const int64_t steps_before = stepper->state().steps;
    if (!record_path.empty() && !record)
      record = std::make_unique<RunRecord>(
          record_path, program, RecordSubject{plain, wanted, *parameters, loss, task.options, *train, validation.get()},
          steps_before);
    Epoch epoch;
    epoch.number = int64_t(history.size()) + 1;
    try {
      Clock::time_point start = Clock::now();
      run_steps(epoch, on_step);
      epoch.seconds = since(start);
      start = Clock::now();
      std::tie(epoch.val_loss, epoch.val_accuracy) = validate();
      epoch.val_seconds = since(start);
    } catch (const InputError& error) {
      restore(before, steps_before);
      if (record) record->end(error.what());
      throw;
    } catch (...) {
      restore(before, steps_before);
      if (record) record->end("stopped by the user");
      throw;
    }
    history.push_back(epoch);
    if (!record) return;
    record->epoch(epoch);
    if (int64_t(history.size()) >= task.options.epochs) record->end("");
  }

  void restore(const std::vector<at::Tensor>& before, int64_t steps_before) {
    std::vector<at::Tensor> now = state();
    for (size_t i = 0; i < now.size(); ++i) now[i].copy_(before[i]);
    stepper->drop();
    stepper->state().steps = steps_before;
  }

  std::string idle_workers() const {
    constexpr int64_t kLargestBatch = 65536;
    const Options& o = task.options;
    const int workers = o.jobs > 0 ? o.jobs : cores(),
              parts = stepper->parts(*train, std::min<int64_t>(o.batch, train->size()));
    if (parts >= workers || o.device != "cpu") return "";
    int64_t batch = o.batch;
    while (batch < kLargestBatch && stepper->parts(*train, batch) < workers) batch = std::min(2 * batch, kLargestBatch);
    const int then = stepper->parts(*train, batch), idle = workers - parts;
    std::string text = fmt::format("a batch of {} makes {} part{} for {} workers: {} of them wait{} for gradients",
                                   o.batch, parts, parts == 1 ? "" : "s", workers, idle, idle == 1 ? "s" : "");
    if (then > parts) text += fmt::format("; --batch {} makes {} parts", batch, then);
    return text;
  }

  std::pair<double, double> validate() const {
    if (!validation) return {kNone, kNone};
    model::Graph now = graph;
    parameters->write_to(now);
    Judgement result = judge(now, wanted, loss, *validation, task.options.jobs);
    return {result.loss, result.accuracy};
  }

  Task task;
  executor::Head head;
  model::Graph graph;  ///< runs at any batch size; same parameters as the task's
  model::Graph plain;  ///< the same, nodes as in the file
  model::ValueId wanted = model::kAbsent;
  LossForm loss;
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<Stepper> stepper;
  std::unique_ptr<Samples> train, validation;
  std::unique_ptr<RunRecord> record;  ///< begun with the first epoch
  std::vector<Epoch> history;
  std::vector<std::string> notes, program;
  std::string mark, record_path;
};

Trainer::Trainer(Task task) : impl_(std::make_unique<Impl>(std::move(task))) {}
Trainer::~Trainer() = default;

void Trainer::record_to(const std::string& path, const std::vector<std::string>& program) {
  impl_->record_path = path, impl_->program = program;
}

bool Trainer::done() const { return int64_t(impl_->history.size()) >= impl_->task.options.epochs; }

const Epoch& Trainer::run_epoch(const std::function<void(int64_t, double)>& on_step) {
  impl_->run_epoch(on_step);
  return impl_->history.back();
}

const std::vector<Epoch>& Trainer::history() const { return impl_->history; }

model::Graph Trainer::result() const {
  model::Graph graph = impl_->task.graph;
  if (!impl_->history.empty()) impl_->parameters->write_to(graph);
  return graph;
}

std::pair<double, double> Trainer::validate() const { return impl_->validate(); }

void Trainer::save(const std::string& path) const {
  std::vector<at::Tensor> state = impl_->state();
  for (at::Tensor& tensor : state) tensor = tensor.to(at::kCPU);
  write_checkpoint(path, {impl_->mark, impl_->stepper->state().steps, impl_->history, state});
}

void Trainer::load(const std::string& path) {
  Checkpoint checkpoint{impl_->mark, 0, {}, {}};
  std::vector<at::Tensor> mine = impl_->state();
  for (const at::Tensor& tensor : mine) checkpoint.state.push_back(at::empty(tensor.sizes(), at::kFloat));
  read_checkpoint(path, checkpoint);
  for (size_t i = 0; i < mine.size(); ++i) mine[i].copy_(checkpoint.state[i]);
  impl_->stepper->state().steps = checkpoint.steps;
  impl_->history = std::move(checkpoint.history);
}

int64_t Trainer::parameters() const { return impl_->parameters->count(); }
const LossForm& Trainer::loss() const { return impl_->loss; }
std::string Trainer::idle_workers() const { return impl_->idle_workers(); }
const std::vector<std::string>& Trainer::notes() const { return impl_->notes; }

}  // namespace netmend::training
