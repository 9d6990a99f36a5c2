// What would be if a unit were silent, held at its mean, negated, or fitted anew: the loss that each unit is to blame
// for, by trying. Fitting anew is one step along the gradient of the loss at the unit's own weights, the best of several
// lengths; a unit without any weight has no gradient and is first brought to life.
#pragma once

#include <string>
#include <vector>

#include "base/budget.h"
#include "localise/ranking.h"
#include "stream/pass.h"
#include "whatif/whatif.h"

namespace netmend::localise {

enum class AblationKind { kZero, kMean, kSignFlip, kRefit };
std::string ablation_name(AblationKind supposed);

struct AblationOptions {
  int64_t inputs = 1024;  ///< sampled evenly from those on either side
  int64_t tried = 64;     ///< units that are tried; those with the steepest gradients where there are more. 0 for all
  uint64_t seed = 42;
  int jobs = 0;
  Budget* budget = nullptr;  ///< fewer units and inputs where it does not allow all; null: no limit
};

struct Ablation {
  std::vector<bool> tried;     ///< by place
  std::vector<AblationKind> best;  ///< by place: what helps most
  std::vector<double> saved;   ///< by place: loss saved an input, at best; 0 for units that were not tried
  std::vector<double> right;   ///< by place: share of inputs that would be right in addition
  std::vector<std::vector<double>>
      by;             ///< by place: loss saved an input, silent, held, negated, refitted; NaN where not tried
  Evidence evidence;  ///< loss saved by what helps most
  Evidence weighed;   ///< loss saved without the unit or by negating it, where that saves any, and half of what fitting
                      ///< it saves
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
