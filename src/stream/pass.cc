#include "stream/pass.h"

#include <ATen/ATen.h>

#include <chrono>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "model/guard.h"

namespace netmend::stream {
namespace {

using model::ValueId;
using Tensors = std::vector<at::Tensor>;
using States = std::vector<std::unique_ptr<State>>;

/// The first few inputs of a data set, spread over it so that sorted data shows more than one class.
dataset::Batch probe(const dataset::Dataset& data, int64_t count) {
  std::vector<int64_t> samples;
  count = std::min(count, data.size());
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * data.size() / count);
  return data.read(samples);
}

/// Everything that is wanted from the network, once, whoever asked for it.
std::vector<Tap> all_taps(const std::vector<const Observer*>& observers) {
  std::vector<Tap> taps;
  for (const Observer* observer : observers)
    for (const Tap& tap : observer->taps()) {
      bool there = false;
      for (const Tap& have : taps) there = there || have.value == tap.value;
      if (!there) taps.push_back(tap);
    }
  return taps;
}

class Pass {
 public:
  Pass(const Subject& subject, const std::vector<const Observer*>& observers, const PassOptions& options)
      : subject_(subject),
        observers_(observers),
        options_(options),
        taps_(all_taps(observers)),
        executor_(make_executor()),
        batch_(subject.batch_size()) {
    int64_t batches = (subject.data->size() + batch_ - 1) / batch_;
    chunks_ = (batches + kBatchesAChunk - 1) / kBatchesAChunk;
    first_ = chunks_ * (options.shard.index - 1) / options.shard.count;
    last_ = chunks_ * options.shard.index / options.shard.count;
  }

  PassResult run() {
    auto start = std::chrono::steady_clock::now();
    PassResult result;
    result.chunks = chunks_;
    result.collected.resize(observers_.size());
    Progress progress("inputs", sample_of(last_) - sample_of(first_), options_.quiet);
    std::vector<States> done(size_t(last_ - first_));
    auto work = [&](int64_t item, int) { done[size_t(item)] = run_chunk(first_ + item); };
    auto hand_over = [&](int64_t item) {
      States states = std::move(done[size_t(item)]);
      if (options_.on_chunk) options_.on_chunk(states);
      keep(result.collected, first_ + item, std::move(states));
      int64_t count = sample_of(first_ + item + 1) - sample_of(first_ + item);
      result.samples += count;
      progress.advance(count);
    };
    try {
      int jobs = options_.jobs > 0 ? options_.jobs : cores();
      in_order(
          last_ - first_, jobs, [](int) { executor::enter_worker(); }, work, hand_over);
    } catch (const Interrupted&) {
      result.interrupted = true;
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

 private:
  executor::Executor make_executor() const {
    executor::Request request;
    for (const Tap& tap : taps_) request.wanted.push_back(tap.value);
    request.device = options_.device;
    request.precision = options_.precision;
    return executor::Executor(subject_.batching.graph, request);
  }

  int64_t sample_of(int64_t chunk) const { return std::min(chunk * kBatchesAChunk * batch_, subject_.data->size()); }

  States run_chunk(int64_t chunk) const {
    at::NoGradGuard no_grad;
    States states;
    for (const Observer* observer : observers_) states.push_back(observer->fresh());
    int64_t end = sample_of(chunk + 1);
    for (int64_t first = sample_of(chunk); first < end; first += batch_)
      run_batch(first, std::min(batch_, end - first), states);
    return states;
  }

  void run_batch(int64_t first, int64_t count, States& states) const {
    // The last batch is filled up with its last input: a kernel may round differently for another batch size.
    std::vector<int64_t> samples(size_t(batch_), first + count - 1);
    std::iota(samples.begin(), samples.begin() + count, first);
    dataset::Batch batch = subject_.data->read(samples);
    Tensors values = model::guarded([&] { return subject_.model_name; },
                                    [&] { return forward(subject_.feed.inputs(batch), count); });
    if (count < batch_) cut(batch, count);
    View view{batch, [&](ValueId id) -> const at::Tensor& {
                for (size_t i = 0; i < taps_.size(); ++i)
                  if (taps_[i].value == id) return values[i];
                throw std::logic_error("an observer looked at a value that it did not ask for");
              }};
    for (auto& state : states) state->observe(view);
  }

  Tensors forward(const Tensors& inputs, int64_t count) const {
    Tensors values;
    if (subject_.batching.kind != executor::Batching::kOne) {
      values = executor_.run(inputs);
      for (size_t i = 0; i < values.size(); ++i) values[i] = values[i].narrow(taps_[i].batch_axis, 0, count);
      return values;
    }
    std::vector<Tensors> rows(taps_.size());
    for (int64_t row = 0; row < count; ++row) {
      Tensors one;
      for (const at::Tensor& input : inputs) one.push_back(input.narrow(0, row, 1));
      Tensors out = executor_.run(one);
      for (size_t i = 0; i < out.size(); ++i) rows[i].push_back(out[i]);
    }
    for (size_t i = 0; i < taps_.size(); ++i) {
      if (rows[i][0].dim() == 0)
        for (at::Tensor& row : rows[i]) row = row.unsqueeze(0);
      values.push_back(at::cat(rows[i], taps_[i].batch_axis));
    }
    return values;
  }

  static void cut(dataset::Batch& batch, int64_t count) {
    batch.samples.resize(size_t(count));
    auto shorten = [&](at::Tensor& tensor) {
      if (tensor.defined()) tensor = tensor.narrow(0, 0, count);
    };
    for (at::Tensor& input : batch.inputs) shorten(input);
    for (at::Tensor& mask : batch.masks) shorten(mask);
    shorten(batch.labels);
  }

  void keep(std::vector<Collected>& collected, int64_t chunk, States states) const {
    bool whole = options_.shard.count == 1;
    for (size_t i = 0; i < states.size(); ++i) {
      auto& pieces = collected[i].pieces;
      bool fold = whole || observers_[i]->merges_exactly();
      if (fold && !pieces.empty()) {
        pieces.back().state->merge(*states[i]);
        ++pieces.back().chunks;
      } else {
        pieces.push_back({chunk, 1, std::move(states[i])});
      }
    }
  }

  const Subject& subject_;
  const std::vector<const Observer*>& observers_;
  const PassOptions& options_;
  std::vector<Tap> taps_;
  executor::Executor executor_;
  int64_t batch_, chunks_ = 0, first_ = 0, last_ = 0;
};

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  size_t slash = text.find('/');
  if (slash == std::string::npos || !parse_int(text.substr(0, slash), shard.index) ||
      !parse_int(text.substr(slash + 1), shard.count) || shard.count < 1 || shard.index < 1 ||
      shard.index > shard.count)
    fail("--shard {}: expected i/n with 1 ≤ i ≤ n, for example 2/5", text);
  return shard;
}

Subject::Subject(std::string name, model::Graph network, std::shared_ptr<const dataset::Dataset> source,
                 const std::vector<ValueId>& wanted)
    : model_name(std::move(name)),
      graph(std::move(network)),
      data(std::move(source)),
      feed(graph, model_name, data->info()) {
  if (data->size() == 0) fail("{} holds no inputs", data->info().spec);
  dataset::Batch few = probe(*data, 8);
  batching = model::guarded([&] { return model_name; },
                            [&] { return executor::find_batching(graph, feed.inputs(few), wanted); });
}

int64_t Subject::batch_size() const { return batching.kind == executor::Batching::kFixed ? batching.size : kBatch; }

PassResult run_pass(const Subject& subject, const std::vector<const Observer*>& observers, const PassOptions& options) {
  return Pass(subject, observers, options).run();
}

std::unique_ptr<State> Collected::fold(const Observer& observer) const {
  std::unique_ptr<State> whole = observer.fresh();
  int64_t next = 0;
  bool first = true;
  for (const Piece& piece : pieces) {
    check(piece.first_chunk == next, "pieces are folded in order");
    next += piece.chunks;
    // The first state is copied, not merged into an empty one: merging into nothing may round.
    if (first) {
      std::stringstream bytes;
      piece.state->save(bytes);
      whole->load(bytes);
    } else {
      whole->merge(*piece.state);
    }
    first = false;
  }
  return whole;
}

}  // namespace netmend::stream
