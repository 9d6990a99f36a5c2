// Ablation of units: the loss with a unit's value set to zero, to its mean, with its sign flipped, or with its weights
// refitted. Refitting is one step along the negative gradient of the loss at the unit's own weights, the best of
// several lengths; a unit without any weight has no gradient and starts from random weights.
#pragma once

#include <string>
#include <vector>

#include "base/budget.h"
#include "localise/ranking.h"
#include "stream/pass.h"
#include "whatif/whatif.h"

namespace netmend::localise {

enum class AblationKind { kZero, kMean, kSignFlip, kRefit };
std::string ablation_name(AblationKind kind);

struct AblationOptions {
  int64_t inputs = 1024;  ///< sampled evenly from those on either side
  int64_t tried = 64;     ///< units that are ablated; those with the largest gradients where there are more. 0 for all
  uint64_t seed = 42;
  int jobs = 0;
  Budget* budget = nullptr;  ///< fewer units and inputs where it does not allow all; null: no limit
};

struct Ablation {
  std::vector<bool> tried;         ///< by place
  std::vector<AblationKind> best;  ///< by place: what helps most
  std::vector<double> saved;       ///< by place: loss saved per input, at best; 0 for units that were not ablated
  std::vector<double> right;       ///< by place: share of inputs that would be right in addition
  std::vector<std::vector<double>>
      by;             ///< by place: loss saved per input by each AblationKind, in order; NaN where not tried
  Evidence evidence;  ///< loss saved by what helps most
  Evidence weighed;   ///< loss saved by zero, mean or sign-flip, where that saves any, and half of what refitting saves
  int64_t inputs = 0;
  double loss = 0, accuracy = 0;  ///< of the sample as it is
};

/// `layers` are those that may be blamed; `failing` and `passing` the inputs on either side.
Ablation ablate(const stream::Subject& subject, const observers::PredictionSettings& settings,
                const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                const std::vector<int64_t>& passing, const AblationOptions& options);

/// Mean over all inputs, in the form of difference_scores.
at::Tensor total_scores(const Draws& draws);

}  // namespace netmend::localise
