// Inputs without labels, with the network's own predictions in their place: mutants can be told from the original by
// them, though nothing says whether either is right.
#pragma once

#include "observers/task.h"
#include "session/session.h"
#include "session/split.h"

namespace netmend::mutants {

struct OwnLabels {
  session::Split split;
  observers::PredictionSettings task;
};
/// Throws InputError when the predictions are no classes.
OwnLabels with_own_labels(session::Session& session, const session::Split& split);

}  // namespace netmend::mutants
