// Coverage-guided fuzzing of images. Xie et al.: DeepHunter, a coverage-guided fuzz testing framework for deep neural
// networks (ISSTA 2019); seeds are picked as NLC's version does (Yuan et al., ICSE 2023): the more often one was
// picked, the rarer. A round changes 128 entries of the queue, 16 times each, by one valid mutation. What covers
// something new joins the queue; what is predicted otherwise than its seed is kept as a failure and not changed any
// further.
#pragma once

#include <functional>
#include <string>

#include "inputs/campaign.h"
#include "inputs/novelty.h"
#include "inputs/queue.h"

namespace netmend::inputs {

struct FuzzOptions {
  int jobs = 0;
  bool quiet = false;
  int64_t rounds = 20;
  /// Decides beforehand how many rounds fit, the first always; a time ends it by the clock.
  Budget budget = Budget::unlimited();
  uint64_t seed = 42;
  bool as_published = false;  ///< DeepHunter's code: contrast, brightness and blur are not held to the validity rule
  std::string queue;          ///< its file
  std::string about;          ///< what the queue belongs to
};

struct FuzzResult {
  CampaignResult made;  ///< everything kept, in the order it was found: failures and what covers something new
  int64_t rounds = 0, resumed = 0;          ///< in all, and those that were found on disk
  int64_t tried = 0, failing = 0;           ///< mutants; `failing` counts all of them, also those not kept
  int64_t kept = 0;                         ///< that joined the queue
  int64_t covered_before = 0, covered = 0;  ///< goals of the seeds, and of all
};

/// Of failures the first of each seed is kept, and those that cover something new. The same for any number of jobs, and
/// for any number of stops in between.
FuzzResult fuzz(const Network& network, const stream::Subject& subject, const observers::PredictionSettings& settings,
                const Chosen& seeds, const observers::SpacePtr& space, Novelty& novelty, const FuzzOptions& options);

}  // namespace netmend::inputs
