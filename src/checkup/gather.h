// The passes of the check-up: everything that checks look at, in one pass over the tests and one over training data.
#pragma once

#include "checkup/context.h"

namespace netmend::checkup {

/// What a pass leaves in a part. `more` ride along; their states come back in the same order.
struct Gathered {
  Part part;
  std::vector<std::unique_ptr<stream::State>> states;
  double seconds = 0;
  bool interrupted = false;
};
Gathered gather(const std::string& name, const stream::Subject& subject, const observers::PredictionSettings& settings,
                const observers::SpacePtr& space, int64_t whole, const std::vector<const stream::Observer*>& more,
                const stream::PassOptions& options);

/// All hidden layers side by side; null when there are none.
observers::SpacePtr hidden_space(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                 const std::vector<model::Layer>& layers);

}  // namespace netmend::checkup
