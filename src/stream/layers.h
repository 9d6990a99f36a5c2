// The layers of a network as a pass can tap them: the axis that counts inputs is found on real inputs, because
// exporters turn it about and merge it with positions.
#pragma once

#include <vector>

#include "model/layer.h"
#include "stream/pass.h"

namespace netmend::stream {

/// executor::find_layers with batch axes that are right for this subject. Layers whose values do not depend on the
/// inputs are left out.
std::vector<model::Layer> find_layers(const Subject& subject);
/// What an observer asks for to see a layer's units.
inline Tap tap_of(const model::Layer& layer) { return {layer.post, layer.batch_axis, layer.merged}; }

}  // namespace netmend::stream
