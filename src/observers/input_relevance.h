// Relevance of what the data gives: of pixels, tokens and columns, in the layout of the data, whatever the network does
// to its inputs first.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "executor/executor.h"
#include "explain/relevance.h"
#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::observers {

struct InputRelevance {
  /// One a feature of the data, float64 inputs × the feature's shape; for ids one number a token. Undefined where a
  /// feature carries no quantity, such as a mask.
  std::vector<at::Tensor> features;
  at::Tensor logits, classes, start;  ///< as in explain::Explained
  at::Tensor absorbed;                ///< one an input: what of the start arrived at none of the features
};

/// Any number of threads may run one.
class InputExplainer {
 public:
  /// `subject` must outlive it. Throws InputError, see explain::Explainer.
  InputExplainer(const stream::Subject& subject, const PredictionSettings& settings, explain::Options options = {});
  /// Of as many inputs as there are. `classes`: see explain::Explainer::run.
  InputRelevance run(const dataset::Batch& batch, const at::Tensor& classes = {}) const;

 private:
  /// Where each element of the starts comes from in the batch's features; −1 for from nowhere there.
  std::vector<at::Tensor> origins(const dataset::Batch& batch) const;
  InputRelevance run_part(const dataset::Batch& batch, const at::Tensor& classes, int64_t count) const;

  const stream::Subject& subject_;
  int64_t together_ = 0;                ///< inputs that are explained at once
  std::vector<model::ValueId> starts_;  ///< where relevance is read
  std::optional<explain::Explainer> explainer_;
  std::optional<executor::Executor> sources_;  ///< what the starts are made of: inputs, or the ids of embeddings
};

/// The head and options with which answers of this kind are explained.
executor::Head explained_head(const PredictionSettings& settings);
explain::Options explained_options(explain::Options options, const PredictionSettings& settings);

}  // namespace netmend::observers
