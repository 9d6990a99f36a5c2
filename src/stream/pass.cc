#include "stream/pass.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/text.h"
#include "cluster/ranks.h"
#include "executor/cost.h"
#include "executor/runtime.h"
#include "model/guard.h"
#include "stream/device_inputs.h"

namespace netmend::stream {
namespace {

using model::ValueId;
using Tensors = std::vector<at::Tensor>;
using States = std::vector<std::unique_ptr<State>>;

constexpr double kWorkOnDevice = 1e12;  ///< multiply-adds of a batch on a GPU

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

/// A network on its way: knows which values are wanted from it and runs it on batches.
class Runner {
 public:
  Runner(const Subject& subject, std::vector<Tap> taps, const PassOptions& options)
      : subject_(subject),
        taps_(std::move(taps)),
        executor_(taps_.empty() ? std::nullopt : std::optional(make_executor(options))) {}

  /// Shows the batch's values, without what fills it up beyond `count`, to the states of this lane. `inputs` as the
  /// network takes them; empty: those of the batch.
  void show(const dataset::Batch& batch, const Tensors& inputs, int64_t count,
            std::span<const std::unique_ptr<State>> states) const {
    at::Tensor mask = subject_.feed.mask(batch);
    Tensors values = inputs.empty() ? run(batch, count) : run(inputs, count);
    dataset::Batch seen = batch;
    cut(seen, count);
    View view{seen,
              [&](ValueId id) -> const at::Tensor& {
                for (size_t i = 0; i < taps_.size(); ++i)
                  if (taps_[i].value == id) return values[i];
                throw std::logic_error("an observer looked at a value that it did not ask for");
              },
              mask.defined() ? mask.narrow(0, 0, count) : mask};
    for (const auto& state : states) state->observe(view);
  }

  /// The wanted values of the first `count` inputs.
  Tensors run(const dataset::Batch& batch, int64_t count) const {
    if (taps_.empty()) return {};  // observers that look at the data alone
    return model::guarded([&] { return subject_.model_name; },
                          [&] { return forward(subject_.feed.inputs(batch), count); });
  }
  Tensors run(const Tensors& inputs, int64_t count) const {
    return model::guarded([&] { return subject_.model_name; }, [&] { return forward(inputs, count); });
  }
  /// Runs the network at all.
  bool runs() const { return !taps_.empty(); }
  const Subject& subject() const { return subject_; }

 private:
  executor::Executor make_executor(const PassOptions& options) const {
    std::vector<ValueId> wanted;
    for (const Tap& tap : taps_) wanted.push_back(tap.value);
    executor::Request request = subject_.request(std::move(wanted));
    if (options.precision != at::kFloat) request.precision = options.precision;
    return executor::Executor(subject_.batching.graph, request);
  }

  Tensors forward(const Tensors& inputs, int64_t count) const {
    Tensors values;
    if (subject_.batching.kind != executor::Batching::kOne) {
      values = run_within_memory(inputs);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = apart(taps_[i], values[i], inputs[0].size(0)).narrow(axis_of(taps_[i]), 0, count);
      return values;
    }
    std::vector<Tensors> rows(taps_.size());
    for (int64_t row = 0; row < count; ++row) {
      Tensors one;
      for (const at::Tensor& input : inputs) one.push_back(input.narrow(0, row, 1));
      Tensors out = executor_->run(one);
      for (size_t i = 0; i < out.size(); ++i) rows[i].push_back(apart(taps_[i], out[i], 1));
    }
    for (size_t i = 0; i < taps_.size(); ++i) {
      if (rows[i][0].dim() == 0)
        for (at::Tensor& row : rows[i]) row = row.unsqueeze(0);
      values.push_back(at::cat(rows[i], axis_of(taps_[i])));
    }
    return values;
  }

  /// In halves where the memory of a GPU does not hold all inputs at once.
  Tensors run_within_memory(const Tensors& inputs) const {
    const int64_t count = inputs[0].size(0);
    if (executor_->request().device.is_cpu() || subject_.batching.kind == executor::Batching::kFixed || count < 2)
      return executor_->run(inputs);
    try {
      return executor_->run(inputs);
    } catch (const model::DeviceMemoryError&) {
      executor::tell_smaller_batches();
    }
    Tensors first, second, both;
    for (const at::Tensor& input : inputs) {
      first.push_back(input.narrow(0, 0, count / 2));
      second.push_back(input.narrow(0, count / 2, count - count / 2));
    }
    first = run_within_memory(first), second = run_within_memory(second);
    for (size_t i = 0; i < first.size(); ++i) both.push_back(at::cat({first[i], second[i]}, axis_of(taps_[i])));
    return both;
  }

  /// Inputs and positions that share an axis get one each.
  static at::Tensor apart(const Tap& tap, const at::Tensor& value, int64_t inputs) {
    if (tap.merged == model::Merged::kNo) return value;
    int64_t positions = value.size(tap.batch_axis) / inputs;
    return tap.merged == model::Merged::kInputsFirst ? value.unflatten(tap.batch_axis, {inputs, positions})
                                                     : value.unflatten(tap.batch_axis, {positions, inputs});
  }
  static int axis_of(const Tap& tap) { return tap.batch_axis + (tap.merged == model::Merged::kPositionsFirst); }

  static void cut(dataset::Batch& batch, int64_t count) {
    batch.samples.resize(size_t(count));
    auto shorten = [&](at::Tensor& tensor) {
      if (tensor.defined() && tensor.size(0) != count) tensor = tensor.narrow(0, 0, count);
    };
    for (at::Tensor& input : batch.inputs) shorten(input);
    for (at::Tensor& mask : batch.masks) shorten(mask);
    shorten(batch.labels);
  }

  const Subject& subject_;
  std::vector<Tap> taps_;
  std::optional<executor::Executor> executor_;
};

/// The batch that suits all: the file's own where a network is fixed to one.
int64_t common_batch(const std::vector<Lane>& lanes) {
  const Subject* fixed = nullptr;
  int64_t least = INT64_MAX;
  for (const Lane& lane : lanes) {
    least = std::min(least, lane.subject->batch_on_device());
    if (lane.subject->batching.kind != executor::Batching::kFixed) continue;
    if (fixed && fixed->batch_size() != lane.subject->batch_size())
      fail("{} takes {} inputs at once, {} takes {}: they cannot go over the data together", fixed->model_name,
           fixed->batch_size(), lane.subject->model_name, lane.subject->batch_size());
    fixed = lane.subject;
  }
  return fixed ? fixed->batch_size() : least;
}

class PassRun {
 public:
  PassRun(const std::vector<Lane>& lanes, const PassOptions& options)
      : lanes_(lanes), options_(options), data_(*lanes.at(0).subject->data), batch_(common_batch(lanes)) {
    for (const Lane& lane : lanes) {
      runners_.emplace_back(*lane.subject, all_taps(lane.observers), options);
      observers_.insert(observers_.end(), lane.observers.begin(), lane.observers.end());
      for (const Observer* observer : lane.observers) reads_inputs_ = reads_inputs_ || observer->reads_inputs();
    }
    int64_t batches = (data_.size() + batch_ - 1) / batch_;
    chunk_ = batches_per_chunk(batches) * batch_;
    chunks_ = (data_.size() + chunk_ - 1) / chunk_;
    first_ = chunks_ * (options.shard.index - 1) / options.shard.count;
    last_ = chunks_ * options.shard.index / options.shard.count;
    shared_ = options.shared && options.shard.count == 1 && cluster::size() > 1;
    if (!shared_) return;
    first_ = chunks_ * cluster::rank() / cluster::size();
    last_ = chunks_ * (cluster::rank() + 1) / cluster::size();
  }

  /// Each rank runs its part, all hand their states around, and all fold them in the order of the data: what a single
  /// process does, in its order, and so its bits.
  PassResult run() {
    if (!shared_) return run_part();
    cluster::agree("their networks, their data or what they ask of them", fingerprint());
    const auto start = std::chrono::steady_clock::now();
    PassResult whole;
    whole.chunks = chunks_;
    whole.collected.resize(observers_.size());
    cluster::together(
        [&] {
          PassResult part = run_part();
          if (part.interrupted) throw Interrupted{};
          std::ostringstream out;
          put(out, part.samples);
          for (const Collected& one : part.collected) save(out, one);
          return std::move(out).str();
        },
        [&](int, std::string bytes) {
          std::istringstream in(std::move(bytes));
          whole.samples += get_int(in);
          take_over(whole.collected, in);
        });
    whole.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return whole;
  }

 private:
  PassResult run_part() {
    auto start = std::chrono::steady_clock::now();
    PassResult result;
    result.chunks = chunks_;
    result.collected.resize(observers_.size());
    Progress progress("inputs", sample_of(last_) - sample_of(first_), options_.quiet);
    std::vector<States> done(size_t(last_ - first_));
    auto work = [&](int64_t item, int) { done[size_t(item)] = run_chunk(first_ + item); };
    auto hand_over = [&](int64_t item) {
      States states = std::move(done[size_t(item)]);
      if (options_.on_chunk && !shared_) options_.on_chunk(states);
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

  int64_t sample_of(int64_t chunk) const { return std::min(chunk * chunk_, data_.size()); }

  States run_chunk(int64_t chunk) const {
    at::NoGradGuard no_grad;
    States states;
    for (const Observer* observer : observers_) states.push_back(observer->fresh());
    int64_t end = sample_of(chunk + 1);
    for (int64_t first = sample_of(chunk); first < end; first += batch_)
      run_batch(first, std::min(batch_, end - first), states);
    return states;
  }

  void run_batch(int64_t first, int64_t count, const States& states) const {
    std::vector<Tensors> inputs(lanes_.size());
    dataset::Batch batch = find_kept(first, inputs);
    if (batch.samples.empty() || reads_inputs_) batch = read(first, count, inputs);
    std::span<const std::unique_ptr<State>> left(states);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      size_t own = lanes_[i].observers.size();
      runners_[i].show(batch, inputs[i], count, left.first(own));
      left = left.subspan(own);
    }
    executor::finish_device_work();
  }

  /// The batch as an earlier pass left it on the GPU, and each lane's inputs; without samples where one is missing.
  dataset::Batch find_kept(int64_t first, std::vector<Tensors>& inputs) const {
    dataset::Batch batch;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Subject& subject = runners_[i].subject();
      if (!runners_[i].runs()) continue;
      auto found = subject.kept ? subject.kept->find(data_, first, batch_) : std::nullopt;
      if (!found) return {};
      batch = std::move(found->batch), inputs[i] = std::move(found->inputs);
    }
    return batch;
  }

  dataset::Batch read(int64_t first, int64_t count, std::vector<Tensors>& inputs) const {
    // The last batch is filled up with its last input: a kernel may round differently for another batch size.
    std::vector<int64_t> samples(size_t(batch_), first + count - 1);
    std::iota(samples.begin(), samples.begin() + count, first);
    dataset::Batch batch = data_.read(samples);
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Subject& subject = runners_[i].subject();
      if (!subject.kept || !runners_[i].runs() || !inputs[i].empty()) continue;
      dataset::Batch rest = batch;
      if (!subject.feed.mask_is_input()) rest.inputs.clear();
      for (const at::Tensor& input : subject.feed.inputs(batch))
        inputs[i].push_back(executor::brought(input, subject.device));
      subject.kept->keep(subject.data, first, {rest, inputs[i]});
    }
    return batch;
  }

  void keep(std::vector<Collected>& collected, int64_t chunk, States states) const {
    bool whole = options_.shard.count == 1 && !shared_;
    for (size_t i = 0; i < states.size(); ++i) {
      auto& pieces = collected[i].pieces;
      // Whoever looks at the states of chunks does so when all ranks' are there.
      bool fold = whole || (observers_[i]->merges_exactly() && !(shared_ && options_.on_chunk));
      if (fold && !pieces.empty()) {
        pieces.back().state->merge(*states[i]);
        ++pieces.back().chunks;
      } else {
        pieces.push_back({chunk, 1, std::move(states[i])});
      }
    }
  }

  static void save(std::ostream& out, const Collected& one) {
    put(out, int64_t(one.pieces.size()));
    for (const Piece& piece : one.pieces) {
      put(out, piece.first_chunk), put(out, piece.chunks);
      piece.state->save(out);
    }
  }

  /// Adds the states of the next rank.
  void take_over(std::vector<Collected>& whole, std::istream& in) const {
    std::vector<std::vector<Piece>> found(observers_.size());
    for (size_t i = 0; i < observers_.size(); ++i)
      for (int64_t count = get_int(in); count > 0; --count) {
        Piece piece{get_int(in), 0, observers_[i]->fresh()};
        piece.chunks = get_int(in);
        piece.state->load(in);
        found[i].push_back(std::move(piece));
      }
    if (options_.on_chunk)  // then there is a piece for each chunk and observer
      for (size_t chunk = 0; !found.empty() && chunk < found[0].size(); ++chunk) {
        States states;
        for (auto& pieces : found) states.push_back(std::move(pieces.at(chunk).state));
        options_.on_chunk(states);
        for (size_t i = 0; i < found.size(); ++i) found[i][chunk].state = std::move(states[i]);
      }
    for (size_t i = 0; i < observers_.size(); ++i)
      for (Piece& piece : found[i]) {
        auto& pieces = whole[i].pieces;
        check(pieces.empty() ? piece.first_chunk == 0 : pieces.back().chunks == piece.first_chunk,
              "ranks hand over chunk after chunk");
        if (pieces.empty())
          pieces.push_back(std::move(piece));
        else
          pieces.back().state->merge(*piece.state), pieces.back().chunks += piece.chunks;
      }
  }

  /// What must be the same on all ranks: weights, how the data is cut, a few inputs of it, and what is asked.
  std::string fingerprint() const {
    Hasher hasher;
    auto add = [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      const at::Tensor own = tensor.to(at::kCPU).contiguous();
      hasher.add({static_cast<const char*>(own.data_ptr()), size_t(own.nbytes())});
    };
    for (int64_t number : {data_.size(), batch_, chunk_, chunks_})
      hasher.add({reinterpret_cast<const char*>(&number), sizeof number});
    for (const Observer* observer : observers_) hasher.add(observer->name());
    for (const Lane& lane : lanes_) {
      const auto& constants = lane.subject->graph.constants;
      std::vector<ValueId> order;
      for (const auto& [value, unused] : constants) order.push_back(value);
      std::sort(order.begin(), order.end());
      for (ValueId value : order) add(constants.at(value).value);
    }
    const dataset::Batch few = data_.read(spread(data_.size(), 256));
    for (const at::Tensor& input : few.inputs) add(input);
    add(few.labels);
    return fmt::format("{:016x}", hasher.finish());
  }

  const std::vector<Lane>& lanes_;
  const PassOptions& options_;
  const dataset::Dataset& data_;
  std::vector<Runner> runners_;
  std::vector<const Observer*> observers_;
  bool reads_inputs_ = false, shared_ = false;
  int64_t batch_, chunk_ = 0, chunks_ = 0, first_ = 0, last_ = 0;
};

}  // namespace

int64_t batches_per_chunk(int64_t batches) { return std::clamp<int64_t>((batches + 63) / 64, 1, 16); }

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
                 const std::vector<ValueId>& wanted, at::Device where)
    : model_name(std::move(name)),
      graph(std::move(network)),
      data(std::move(source)),
      feed(graph, model_name, data->info()),
      device(where) {
  if (!device.is_cpu()) kept = std::make_shared<DeviceInputs>();
  if (data->size() == 0) fail("{} holds no inputs", data->info().spec);
  dataset::Batch few = data->read(spread(data->size(), 8));
  batching = model::guarded([&] { return model_name; },
                            [&] { return executor::find_batching(graph, feed.inputs(few), wanted); });
  cost =
      model::guarded([&] { return model_name; },
                     [&] {
                       // One input is enough for shapes, unless the file fixes how many there are.
                       dataset::Batch some = data->read(spread(data->size(), 1));
                       if (batching.kind == executor::Batching::kFixed)
                         some = data->read(std::vector<int64_t>(size_t(batching.size), int64_t(0)));
                       return executor::multiply_adds(batching.graph, feed.inputs(some), wanted) / double(some.count());
                     });
}

int64_t Subject::batch_size() const { return batching.kind == executor::Batching::kFixed ? batching.size : kBatch; }

int64_t Subject::batch_on_device(int64_t most) const {
  if (device.is_cpu() || batching.kind != executor::Batching::kAny) return batch_size();
  most = std::min(most, executor::device_batch_limit());
  int64_t batch = std::min(kBatch, most);
  while (batch < most && 2 * double(batch) * (cost + 1) <= kWorkOnDevice) batch *= 2;
  return batch;
}

executor::Request Subject::request(std::vector<ValueId> wanted, executor::Mode mode) const {
  executor::Request request;
  request.wanted = std::move(wanted), request.mode = mode, request.device = device;
  if (mode == executor::Mode::kFast && !device.is_cpu()) request.precision = executor::pass_precision();
  return request;
}

std::vector<int64_t> spread(int64_t size, int64_t count, double offset) {
  std::vector<int64_t> samples;
  count = std::min(count, size);
  for (int64_t i = 0; i < count; ++i) samples.push_back(int64_t((double(i) + offset) * double(size) / double(count)));
  return samples;
}

namespace {

dataset::Batch rows_of(const dataset::Batch& batch, int64_t first, int64_t count, int64_t filled_to) {
  std::vector<int64_t> rows(size_t(filled_to), first + count - 1);
  std::iota(rows.begin(), rows.begin() + count, first);
  at::Tensor index = at::tensor(rows, at::kLong);
  dataset::Batch part;
  auto pick = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.index_select(0, index) : tensor; };
  for (const at::Tensor& input : batch.inputs) part.inputs.push_back(pick(input));
  for (const at::Tensor& mask : batch.masks) part.masks.push_back(pick(mask));
  part.samples = std::move(rows);
  return part;
}

}  // namespace

std::vector<at::Tensor> run_few(const Subject& subject, const std::vector<ValueId>& wanted, const dataset::Batch& batch,
                                int jobs) {
  std::vector<Tap> taps;
  for (ValueId id : wanted) taps.push_back({id, 0});
  Runner runner(subject, taps, {});
  const int64_t size = subject.batch_size(), count = batch.count(), parts = (count + size - 1) / size;
  std::vector<std::vector<at::Tensor>> found(wanted.size(), std::vector<at::Tensor>(static_cast<size_t>(parts)));
  auto work = [&](int64_t part, int) {
    at::NoGradGuard no_grad;
    int64_t first = part * size, own = std::min(size, count - first);
    Tensors values = runner.run(rows_of(batch, first, own, size), own);
    for (size_t i = 0; i < values.size(); ++i) found[i][size_t(part)] = values[i].to(at::kCPU);
  };
  in_order(
      parts, jobs > 0 ? jobs : cores(), [](int) { executor::enter_worker(); }, work, [](int64_t) {});
  std::vector<at::Tensor> whole;
  for (const auto& values : found) whole.push_back(at::cat(values, 0));
  return whole;
}

PassResult run_pass(const Subject& subject, const std::vector<const Observer*>& observers, const PassOptions& options) {
  return run_pass({{&subject, observers}}, options);
}

PassResult run_pass(const std::vector<Lane>& lanes, const PassOptions& options) {
  return PassRun(lanes, options).run();
}

Pass::Pass(const Subject& subject) : Pass(std::vector<const Subject*>{&subject}) {}

Pass::Pass(const std::vector<const Subject*>& subjects) {
  for (const Subject* subject : subjects) lanes_.push_back({subject, {}});
}

size_t Pass::add(const Observer& observer, size_t lane) {
  lanes_.at(lane).observers.push_back(&observer);
  return lanes_[lane].observers.size() - 1;
}

size_t Pass::position(size_t lane, size_t place) const {
  for (size_t before = 0; before < lane; ++before) place += lanes_[before].observers.size();
  return place;
}

void Pass::run(const PassOptions& options) {
  PassOptions how = options;
  if (!takers_.empty())
    how.on_chunk = [&](std::vector<std::unique_ptr<State>>& chunk) {
      if (options.on_chunk) options.on_chunk(chunk);
      for (const Taker& taker : takers_) taker.take(*chunk[position(taker.lane, taker.place)]);
    };
  result_ = run_pass(lanes_, how);
}

State& Pass::folded(const Observer& observer, size_t lane, size_t place) {
  // Outside a shard all chunks are merged into one piece; there is none when Ctrl-C came before the first.
  auto& pieces = result_.collected.at(position(lane, place)).pieces;
  if (pieces.empty()) pieces.push_back({0, 0, observer.fresh()});
  return *pieces.front().state;
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
