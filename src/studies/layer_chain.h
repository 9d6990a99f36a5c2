// An image network as Keras programs count it: convolutions and dense layers with their activations, pools, the
// flattening, the logits and their softmax, one after the other. A unit of a map is its mean.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "observers/coverage/units.h"
#include "stream/pass.h"

namespace netmend::studies {

struct ChainLayer {
  std::string name;  ///< conv1, pool1, flatten, fc1, softmax
  model::ValueId value = model::kAbsent;
  int64_t units = 0;
  bool weights = false, dense = false;
  bool flatten = false;  ///< counts as a layer, but no criterion looks at it
};

class LayerChain {
 public:
  /// `subject` must outlive it. Throws InputError for a network that is no such chain.
  LayerChain(const stream::Subject& subject, const executor::Head& head);

  const std::vector<ChainLayer>& layers() const { return layers_; }
  /// Throws InputError when there is none of this name.
  size_t find(const std::string& name) const;
  /// Layers with weights but the output layer, in order; the last of them is the one that is studied.
  const std::vector<size_t>& hidden() const { return hidden_; }
  /// The layers that criteria look at, side by side.
  const observers::SpacePtr& space() const { return space_; }
  /// Where a layer stands in the space.
  size_t place(size_t layer) const { return places_[layer]; }

  /// Values of all layers of the space and how each input is predicted; rows are numbered from 0. `inputs`: as the
  /// network is fed.
  observers::UnitBatch read(const at::Tensor& inputs, const at::Tensor& labels, int jobs) const;
  /// Float inputs × units of one layer, the flattening too: its values count channels fastest, as Keras has them.
  at::Tensor read_layer(size_t layer, const at::Tensor& inputs, int jobs) const;

 private:
  std::vector<at::Tensor> run(const executor::Executor& executor, const at::Tensor& inputs) const;
  std::vector<ChainLayer> layers_;
  std::vector<size_t> hidden_, places_;
  observers::SpacePtr space_;
  std::vector<size_t> seen_;  ///< layers of the space
  const stream::Subject& subject_;
  model::ValueId logits_;
  std::optional<executor::Executor> all_;
};

/// Values of one layer of the space alone, float inputs × units; and the rows of some inputs.
at::Tensor values_of(const observers::UnitBatch& batch, const observers::UnitSpace& space, size_t layer);
observers::UnitBatch rows_of(const observers::UnitBatch& batch, const std::vector<int64_t>& rows);
/// The same with one layer alone.
observers::UnitBatch only_layer(const observers::UnitBatch& batch, const observers::UnitSpace& space, size_t layer);

}  // namespace netmend::studies
