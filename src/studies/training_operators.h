// DeepCrime's operators (Humbatova et al. 2021) as changes of a training that netmend's trainer has not run yet: of its
// data, its settings or its network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "model/graph.h"
#include "training/options.h"

namespace netmend::studies {

/// A training before it is run; an operator changes it.
struct Plan {
  model::Graph graph;
  std::shared_ptr<const dataset::Dataset> train;
  training::Options options;
  int64_t patience = 0;     ///< epochs without a better validation loss after which it ends; 0: it runs them all
  bool validation = false;  ///< a tenth of the training data is held out
  uint64_t seed = 0;
  const std::vector<int64_t>& labels;  ///< of `train`
};

/// A configuration: its value in words and as a number, and what it does.
struct Configuration {
  std::string value;
  double number = 0;
  std::function<void(Plan&)> apply;
};

struct TrainingOperator {
  const char *name, *words;
  /// For operators with an ordered strength: from the original value to the strongest, and how near two values may
  /// come.
  double original = 0, strongest = 0, precision = 0;
  void (*with)(Plan&, double) = nullptr;
  /// For the others: the values that are tried.
  std::vector<Configuration> list = {};
  bool enriched = false;  ///< against the original that has what it changes
};

/// In the order of the paper. `usual` are the settings of the original, `inputs` those of its training data.
std::vector<TrainingOperator> operators_for(const training::Options& usual, int64_t inputs);

/// A training with all that these operators change: L2 decay, dropout, clipped gradients, early stopping by a hold-out,
/// and a first layer without bias.
void enrich(Plan& plan, bool with_bias);

}  // namespace netmend::studies
