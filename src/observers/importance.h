// How important each unit is: its relevance for the predictions made, added up over the data ("cumulative relevance" of
// DeepImportance, Gerasimou et al. 2020, DOI 10.1145/3377811.3380391). All units of all layers come from one pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "explain/relevance.h"
#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::observers {

struct ImportanceSettings {
  explain::Options explain;
  /// Whose relevance counts; empty for what is answered right (all inputs, where nothing is right or wrong). Any thread
  /// may call.
  std::function<bool(const SampleRow&)> counts = {};
  bool before_activation = false;  ///< relevance of the layers' values before their activations
};

struct ImportanceState;

/// A unit's relevance for an input is the sum over positions.
class Importance : public stream::Observer {
 public:
  using State = ImportanceState;
  /// `subject` must outlive it, and be the one that the pass goes over. Throws InputError, see explain::Explainer.
  Importance(const stream::Subject& subject, PredictionSettings predictions, std::vector<model::Layer> layers,
             ImportanceSettings settings = {});
  std::string name() const override { return "importance"; }
  std::vector<stream::Tap> taps() const override { return predictions_.taps(); }
  bool reads_inputs() const override { return true; }
  std::unique_ptr<stream::State> fresh() const override;
  const std::vector<model::Layer>& layers() const { return layers_; }
  /// Rows of ImportanceState::sums: one a class, or one for all.
  int64_t groups() const { return groups_; }

 private:
  friend struct ImportanceState;
  const stream::Subject& subject_;
  Predictions predictions_;
  std::vector<model::Layer> layers_;
  ImportanceSettings settings_;
  int64_t groups_ = 1;
  std::vector<stream::Tap> read_;  ///< where relevance is read, one a layer
  explain::Explainer explainer_;
  int64_t together_ = 0;  ///< inputs that are explained at once
};

struct ImportanceState : stream::State {
  explicit ImportanceState(const Importance& observer);
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  std::vector<at::Tensor> sums;  ///< one a layer: float64 groups × units, by the class that was answered
  at::Tensor inputs;             ///< int64, by group: inputs that counted
  at::Tensor starts;             ///< float64, by group: their logits, added up
  double absorbed = 0;           ///< of all starts
  int64_t not_finite = 0;        ///< inputs left out because a number was not finite

 private:
  const Importance& observer_;
  PredictionState judge_;  ///< of the batch at hand
};

/// The units of a layer with the largest signed sum, the most important first; equal ones by number. All of them when
/// there are fewer than `count`. `group`: only for answers of this class; −1 for all.
std::vector<int64_t> most_important(const ImportanceState& state, size_t layer, int64_t count, int64_t group = -1);
/// The sums that this goes by: float64, one a unit.
at::Tensor importance_of(const ImportanceState& state, size_t layer, int64_t group = -1);

/// How many inputs of this data are explained at once: the pass's batch, or fewer where the values of all layers would
/// take much memory. Depends on model and data alone.
int64_t explained_together(const stream::Subject& subject, const explain::Explainer& explainer);
/// Relevance of a data batch, whatever the network's batching is, `together` inputs at once. `taps`: where it is read,
/// as in the explainer's wanted values; inputs get an axis of their own as in a pass. `classes`: see Explainer::run.
explain::Explained explain_batch(const stream::Subject& subject, const explain::Explainer& explainer,
                                 const std::vector<stream::Tap>& taps, const dataset::Batch& batch, int64_t together,
                                 const at::Tensor& classes = {});

}  // namespace netmend::observers
