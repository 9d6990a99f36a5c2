// The observer contract. An observer is a description that never changes; what it has seen is a state. States of parts
// of the data merge into the state of the whole, in the order of the data, so that threads and machines can share the
// work.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "model/graph.h"
#include "model/layer.h"

namespace netmend::stream {

/// A value that an observer wants to see, and its axis that counts inputs.
struct Tap {
  model::ValueId value = model::kAbsent;
  int batch_axis = 0;
  model::Merged merged = model::Merged::kNo;  ///< then observers see positions as an axis of their own
};

/// A batch as an observer sees it: padding is already cut off. Valid during observe() alone.
struct View {
  const dataset::Batch& batch;
  /// A value that the observer asked for.
  std::function<const at::Tensor&(model::ValueId)> value;
  /// Positions that count, bool inputs × length; undefined where nothing is padded.
  at::Tensor mask = {};
};

class State {
 public:
  virtual ~State() = default;
  /// One thread at a time; batches of a chunk in order.
  virtual void observe(const View& view) = 0;
  /// Adds what `later` saw of the inputs that follow; `later` stays as it is.
  virtual void merge(const State& later) = 0;
  /// Everything, bit for bit, in a form that load() of the same version reads.
  virtual void save(std::ostream& out) const = 0;
  virtual void load(std::istream& in) = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual std::string name() const = 0;
  /// Raised whenever saved states change their form or meaning.
  virtual int version() const { return 1; }
  virtual std::vector<Tap> taps() const = 0;
  /// A state that has seen nothing. Any thread may call.
  virtual std::unique_ptr<State> fresh() const = 0;
  /// Looks at View::batch's inputs themselves: else they may be missing there when they lie on a GPU already.
  virtual bool reads_inputs() const { return false; }
  /// Merging is exact in any grouping (counts, extremes, sets): parts of a shard may be folded before they are saved.
  virtual bool merges_exactly() const { return false; }
};

}  // namespace netmend::stream
