// Lockstep on a core: sixteen networks, one in each lane of its vectors. For lockstep.cc alone.
#pragma once

#include "training/lockstep.h"

namespace netmend::training {

std::unique_ptr<Lockstep> make_lockstep_lanes(const LockstepPlan& plan, const model::Graph& graph,
                                              model::ValueId wanted);

}  // namespace netmend::training
