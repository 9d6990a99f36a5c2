// Lockstep by operations on whole tensors, for a GPU: hundreds of networks at once, their weights stacked.
// For lockstep.cc and its test alone.
#pragma once

#include "training/lockstep.h"

namespace netmend::training {

/// A device of any kind; on the CPU it is the slow twin of lockstep_lanes.h.
std::unique_ptr<Lockstep> make_lockstep_tensors(const LockstepPlan& plan, const model::Graph& graph,
                                                model::ValueId wanted, at::Device device);

}  // namespace netmend::training
