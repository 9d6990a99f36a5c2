#include "training/lockstep.h"

#include "training/lanes.h"
#include "training/lockstep_lanes.h"
#include "training/lockstep_tensors.h"

namespace netmend::training {

/// Hundreds of networks fill a GPU; of more the windows of their convolutions take gigabytes.
constexpr int64_t kMostOnDevice = 128;

std::unique_ptr<Lockstep> Lockstep::make(const LockstepPlan& plan, const model::Graph& graph, model::ValueId wanted,
                                         at::Device device) {
  if (!device.is_cpu()) return make_lockstep_tensors(plan, graph, wanted, device);
  return make_lockstep_lanes(plan, graph, wanted);
}

int64_t Lockstep::most(at::Device device) { return device.is_cpu() ? kLanes : kMostOnDevice; }

}  // namespace netmend::training
