// Which layers can be blamed for a prediction.
#pragma once

#include <string>
#include <vector>

#include "executor/layers.h"
#include "model/layer.h"

namespace netmend::localise {

/// Those of `all` that `head.output` depends on. Without `names` all but the output layer (its
/// units are the classes: they are active when the network says so, not when it is wrong), unless there is no other;
/// else those named. Throws InputError with the nearest name.
std::vector<model::Layer> candidates(const std::vector<model::Layer>& all, const model::Graph& graph,
                                     const executor::Head& head, int64_t outputs,
                                     const std::vector<std::string>& names = {});

}  // namespace netmend::localise
