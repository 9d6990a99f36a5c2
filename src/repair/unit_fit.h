// Gradient descent on the weights of a few units, everything else frozen. What does not depend on them is computed once
// and kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "repair/problem.h"

namespace netmend::repair {

struct FitOptions {
  Budget* budget = nullptr;  ///< what an epoch costs is spent here; null: no limit
  int most_epochs = 16;
  int64_t batch = 128;
  double price = 1e-4;  ///< on the squared distance from where the weights were, in their layer's usual size
  /// Forget what the units have learned: no weights, a little bias. For units that are beyond repair where they stand.
  bool anew = false;
};

/// Why no unit of the network can be fitted, as a sentence without its end; "" when they can.
std::string why_unfittable(const Problem& problem);

class UnitFit {
 public:
  /// Throws InputError when the units have no weights that can be changed.
  UnitFit(const Problem& problem, const std::vector<localise::UnitPlace>& units);
  ~UnitFit();

  /// Starts from the network as it is (or anew); one epoch at least, then as many as the budget allows.
  std::vector<edits::Edit> run(const FitOptions& options);
  /// The mean loss on the search part over the last epoch of run().
  double loss() const;
  /// Multiply-adds of an epoch.
  double epoch_work() const;
  int64_t weights() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::repair
