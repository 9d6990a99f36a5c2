// A network as attacks see it: scores of classes as a function of the feature that is changed, and their gradients. It
// takes quantities as parts of their valid range, so that scale, mean, std and the layout of axes are on the path of
// the gradient.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "inputs/originals.h"
#include "model/layer.h"
#include "observers/predictions.h"
#include "stream/pass.h"
#include "stream/raw_range.h"

namespace netmend::inputs {

/// One unit of one layer, as --unit names it.
struct UnitPlace {
  model::Layer layer;
  int64_t unit = 0;
};

/// Runs on the subject's device; what it gives back lies where the units lie that it is given.
class Network {
 public:
  /// All must outlive it. `range` is null for ids.
  Network(const stream::Subject& subject, const observers::PredictionSettings& settings, const Subject& changed,
          const stream::RawRange* range, std::vector<UnitPlace> units = {});
  ~Network();

  const Subject& changed() const { return changed_; }
  const stream::RawRange* range() const { return range_; }
  const std::vector<UnitPlace>& units() const { return units_; }
  int64_t classes() const;

  /// Scores of all classes, inputs × classes; the largest is the prediction. Of one sigmoid: those of no and yes. Where
  /// only probabilities are to be had, their logarithms. `mask` replaces that of the batch where it is defined.
  at::Tensor scores(const Originals& inputs, const at::Tensor& units, const at::Tensor& mask = {}) const;
  at::Tensor predictions(const Originals& inputs, const at::Tensor& units, const at::Tensor& mask = {}) const;

  struct Gradient {
    at::Tensor scores;
    std::vector<at::Tensor> gradients;  ///< one for each weighting, like units
  };
  /// Gradients of weighted sums of scores: `weigh` is given the scores of some rows of the batch and returns weights
  /// like them, one tensor for each gradient that is wanted.
  using Weigh = std::function<std::vector<at::Tensor>(const at::Tensor& scores, const at::Tensor& rows)>;
  Gradient gradient(const Originals& inputs, const at::Tensor& units, const Weigh& weigh) const;
  /// Whether any score depends on these inputs by a gradient that is a number and not 0.
  bool has_gradients(const Originals& inputs) const;
  /// Gradient of the mean of units().
  at::Tensor unit_gradient(const Originals& inputs, const at::Tensor& units) const;

  /// The batch with the feature changed, as the network is fed.
  dataset::Batch changed_batch(const Originals& inputs, const at::Tensor& units, const at::Tensor& mask = {}) const;

 private:
  struct Part;
  void each_part(const Originals& inputs, const at::Tensor& units, const std::function<void(const Part&)>& visit) const;
  at::Tensor class_scores(const at::Tensor& value) const;

  const stream::Subject& subject_;
  const observers::PredictionSettings& settings_;
  Subject changed_;
  const stream::RawRange* range_;
  std::vector<UnitPlace> units_;
  executor::Executor fast_;
  std::unique_ptr<executor::Executor> plain_, to_units_;
};

/// Weights whose weighted sum of scores has the direction of the loss: that of cross-entropy divided by 1 − p of the
/// prediction, which has the same sign and does not vanish where the network is confident.
at::Tensor away_from(const at::Tensor& scores, const at::Tensor& predictions);

}  // namespace netmend::inputs
