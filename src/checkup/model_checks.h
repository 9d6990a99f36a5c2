// What a model alone shows: parts that reach no output, layers that nothing bends between, weights that are no numbers,
// copies, and the like. Needs no data.
#pragma once

#include "checkup/context.h"

namespace netmend::checkup {

/// `output` is what is judged. `words` as in Context.
void check_graph(const model::Graph& graph, const executor::Head& head, const findings::Words& words, Found& found);
void check_weights(const model::Graph& graph, const executor::Head& head, const findings::Words& words, Found& found);

}  // namespace netmend::checkup
