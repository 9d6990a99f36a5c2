// Recurrent layers whose gates are held: for asking where a decision came from, not how it would change.
#pragma once

#include "ops/op.h"

namespace netmend::ops {

/// The kernel of an RNN, GRU or LSTM with the same outputs. Its derivative takes gates for constants and each
/// activation of the signal for a line through 0 at the slope that leads to its value; offsets have none.
Kernel with_held_gates(const NodeView& node);

}  // namespace netmend::ops
