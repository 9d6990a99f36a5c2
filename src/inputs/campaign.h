// One method over many inputs, on all cores: what was made, and what the network predicts for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "inputs/method.h"

namespace netmend::inputs {

/// Which inputs are tried, and what the network predicts for them as they are.
struct Chosen {
  std::vector<int64_t> samples, predictions;
  int64_t count() const { return int64_t(samples.size()); }
};

/// How far a changed input is from the original, in parts of the valid range; of ids only `l0`, the tokens that differ.
struct Distance {
  double l0 = 0, l2 = 0, linf = 0;
};

struct Attempt {
  int64_t sample = 0, label = -1, before = -1, after = -1;
  bool made = true;
  Distance distance;
  bool success() const { return made && after != before; }
};

struct CampaignResult {
  std::vector<Attempt> attempts;  ///< one per input, in the order of the data
  at::Tensor raw;                 ///< what was made, in raw units: attempts × shape of the feature
  at::Tensor mask;                ///< where a method changes it
  double seconds = 0;
  bool interrupted = false;  ///< by Ctrl-C: only the first inputs are here
  bool cut = false;          ///< by CampaignOptions::budget: the same
};

struct CampaignOptions {
  int jobs = 0;
  bool quiet = false;
  bool round = false;    ///< raw values become whole numbers
  int64_t attempts = 1;  ///< of random methods: the first that changes the prediction is taken
  /// Decides beforehand how many inputs are tried, so that the same budget gives the same inputs; a time ends it by the
  /// clock.
  Budget budget = Budget::unlimited();
};

/// Bit-identical for any number of jobs. Memory for what is made is taken at once; see made_bytes.
CampaignResult run_campaign(const Network& network, const stream::Subject& subject, const Chosen& chosen,
                            const Method& method, const Settings& settings, const CampaignOptions& options);
/// Inputs that are changed together.
int64_t campaign_batch(const stream::Subject& subject);
/// Multiply-adds that a method costs per input, about: what a budget is divided by.
double work_per_input(const Method& method, const Settings& settings, const Network& network, double cost,
                      int64_t attempts);
/// Some of the chosen inputs, from `first` on.
Originals read_originals(const Network& network, const stream::Subject& subject, const Chosen& chosen, int64_t first,
                         int64_t count);
/// What the results of one method take.
int64_t made_bytes(const Network& network, int64_t inputs);

/// Row by row.
std::vector<Distance> distances(const at::Tensor& before, const at::Tensor& after, bool ids);

}  // namespace netmend::inputs
