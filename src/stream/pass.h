// The single pass: streams a data set through a network once and feeds every observer. The data is cut into batches of
// one size at fixed positions and batches into fixed chunks; a worker takes a whole chunk with fresh states, and the
// states are folded in order. So no number of workers or shards changes a bit of the result.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/batching.h"
#include "executor/executor.h"
#include "stream/feed.h"
#include "stream/observer.h"

namespace netmend::stream {

constexpr int64_t kBatch = 64;  ///< fits the second-level cache with the networks people have
/// Batches that one worker takes with fresh states: at most 16, and fewer where there would not be 64 chunks to share
/// out. Follows from the data alone, so that neither machine nor workers change a result.
int64_t batches_per_chunk(int64_t batches);

/// Part `index` of `count`, from 1; a whole number of chunks.
struct Shard {
  int64_t index = 1, count = 1;
};
/// `2/5`. Throws InputError.
Shard parse_shard(const std::string& text);

struct PassOptions {
  int jobs = 0;  ///< worker threads; 0 for one per core
  Shard shard;
  bool shared = false;  ///< ranks of an MPI job do a part each, and all get the whole; all of them call it together
  bool quiet = false;
  at::ScalarType precision = at::kFloat;
  /// Called with the states of each chunk in order, before they are merged; may take out of them what would grow.
  std::function<void(std::vector<std::unique_ptr<State>>& chunk)> on_chunk;
};

/// States of consecutive chunks. In a shard, observers that do not merge exactly keep one per chunk.
struct Piece {
  int64_t first_chunk = 0, chunks = 0;
  std::unique_ptr<State> state;
};
struct Collected {
  std::vector<Piece> pieces;
  /// Folds all pieces in order; they must be consecutive from chunk 0. Returns the state of the whole.
  std::unique_ptr<State> fold(const Observer& observer) const;
};

struct PassResult {
  std::vector<Collected> collected;  ///< one per observer
  int64_t samples = 0;
  int64_t chunks = 0;  ///< of the whole data set
  double seconds = 0;
  bool interrupted = false;  ///< Ctrl-C: what is here covers only the first `samples`
};

class DeviceInputs;

/// A network made ready for a data set: fed, its batching known. All that runs it does so on `device`.
struct Subject {
  std::string model_name;
  model::Graph graph;  ///< as in the file
  std::shared_ptr<const dataset::Dataset> data;
  Feed feed;
  executor::Batching batching;
  double cost = 0;  ///< multiply-adds per input
  at::Device device = at::kCPU;
  std::shared_ptr<DeviceInputs> kept;  ///< inputs that passes left on a GPU for later ones; shared by copies

  Subject(std::string model_name, model::Graph graph, std::shared_ptr<const dataset::Dataset> data,
          const std::vector<model::ValueId>& wanted, at::Device device = at::kCPU);
  /// Inputs of a batch on the CPU.
  int64_t batch_size() const;
  /// Inputs that go through the network at once: batch_size(), and on a GPU, which is busy with many only, up to `most`
  /// as far as the file allows. It follows from network and device alone.
  int64_t batch_on_device(int64_t most = 4096) const;
  /// How an executor of this network is asked for: on the device.
  executor::Request request(std::vector<model::ValueId> wanted, executor::Mode mode = executor::Mode::kFast) const;
};

/// The wanted values for a few inputs, outside a pass: whatever the network's batching is, all at once and on all
/// cores. `batch` may have been changed since it was read.
std::vector<at::Tensor> run_few(const Subject& subject, const std::vector<model::ValueId>& wanted,
                                const dataset::Batch& batch, int jobs = 0);
/// `count` inputs spread over the data, so that sorted data shows all of its classes; `offset` of 0 … 1 moves them, for
/// others than before.
std::vector<int64_t> spread(int64_t size, int64_t count, double offset = 0);

/// One of several networks that go over the same data in one pass, and those that watch it.
struct Lane {
  const Subject* subject = nullptr;
  std::vector<const Observer*> observers;
};

/// An observer that takes part in a pass. Its state comes back with its own type: an observer names it `State`.
template <typename T>
class Watched {
  friend class Pass;
  size_t lane = 0, place = 0;
  const T* observer = nullptr;
};

/// A pass over one split, put together and then run: each observer that is added rides along, and the handle that it
/// gets gives its state back. With several subjects they go over the same data together, each input read once.
class Pass {
 public:
  explicit Pass(const Subject& subject);
  /// The subjects' data must be the same. Throws InputError when the networks are fixed to different batch sizes.
  explicit Pass(const std::vector<const Subject*>& subjects);

  /// The observer must outlive the pass.
  template <typename T>
  Watched<T> watch(const T& observer, size_t lane = 0) {
    Watched<T> handle;
    handle.lane = lane, handle.place = add(observer, lane), handle.observer = &observer;
    return handle;
  }
  /// Called with the state of each chunk, in order, before it is merged; may take out of it what would grow.
  template <typename T>
  void each_chunk(const Watched<T>& handle, std::function<void(typename T::State&)> take) {
    takers_.push_back({handle.lane, handle.place,
                       [take = std::move(take)](State& state) { take(static_cast<typename T::State&>(state)); }});
  }

  /// Once.
  void run(const PassOptions& options);

  /// After run(): what the observer saw. Lives as long as the pass.
  template <typename T>
  typename T::State& state(const Watched<T>& handle) {
    return static_cast<typename T::State&>(folded(*handle.observer, handle.lane, handle.place));
  }
  /// The same, to keep.
  template <typename T>
  std::unique_ptr<typename T::State> release(const Watched<T>& handle) {
    state(handle);
    auto& piece = result_.collected[position(handle.lane, handle.place)].pieces.front();
    return std::unique_ptr<typename T::State>(static_cast<typename T::State*>(piece.state.release()));
  }
  int64_t samples() const { return result_.samples; }
  double seconds() const { return result_.seconds; }
  /// Ctrl-C: states cover only the first samples().
  bool interrupted() const { return result_.interrupted; }

 private:
  struct Taker {
    size_t lane, place;
    std::function<void(State&)> take;
  };
  size_t add(const Observer& observer, size_t lane);
  size_t position(size_t lane, size_t place) const;
  State& folded(const Observer& observer, size_t lane, size_t place);

  std::vector<Lane> lanes_;
  std::vector<Taker> takers_;
  PassResult result_;
};

PassResult run_pass(const Subject& subject, const std::vector<const Observer*>& observers, const PassOptions& options);

/// The lanes' data must be the same; each input is read once. States and results are those of the lanes' observers, one
/// lane after the other. Throws InputError when the networks are fixed to different batch sizes.
PassResult run_pass(const std::vector<Lane>& lanes, const PassOptions& options);

/// Numbers in states, as bytes of fixed width.
void put(std::ostream& out, const at::Tensor& tensor);
void put(std::ostream& out, int64_t number);
void put(std::ostream& out, double number);
void put(std::ostream& out, const std::string& text);
at::Tensor get_tensor(std::istream& in);
int64_t get_int(std::istream& in);
double get_double(std::istream& in);
std::string get_text(std::istream& in);

}  // namespace netmend::stream
