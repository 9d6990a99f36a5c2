// What a change of weights does besides what it was made for: to predictions under small perturbations and attacks, to
// classes and to groups.
#pragma once

#include <string>
#include <vector>

#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::studies {

/// Shares of correct predictions that change; NaN where no such method suits the data or too few are correct.
struct Robustness {
  double mild;  ///< under the perturbations that `netmend check` uses, all together
  double pgd;   ///< by PGD, at its own distance
};
constexpr int64_t kRobustnessInputs = 300;
/// On up to `inputs` of `subject` that `rows`, one per input in their order, say are predicted correctly.
Robustness robustness_of(const stream::Subject& subject, const observers::PredictionSettings& settings,
                         const std::vector<observers::SampleRow>& rows, uint64_t seed, int jobs,
                         int64_t inputs = kRobustnessInputs);

/// The class or group whose accuracy fell most (or rose least); `inputs` 0 where there is none.
struct WorstChange {
  std::string name;   ///< `cat`, `sex=F`
  double change = 0;  ///< of its accuracy
  int64_t inputs = 0;
};
/// `before` and `after` are predictions for the same inputs in the same order, whose `sample` counts in `data`. Those
/// with fewer than 30 inputs do not count.
WorstChange worst_class(const std::vector<std::string>& classes, const std::vector<observers::SampleRow>& before,
                        const std::vector<observers::SampleRow>& after);
WorstChange worst_group(const dataset::Dataset& data, const std::vector<observers::SampleRow>& before,
                        const std::vector<observers::SampleRow>& after);

}  // namespace netmend::studies
