// Loss and accuracy of a network on data, fast, in batches of one size.
#pragma once

#include "model/graph.h"
#include "training/loss.h"
#include "training/samples.h"

namespace netmend::training {

struct Judgement {
  double loss = 0, accuracy = 0;  ///< means over the inputs; accuracy of NaN where nothing counts as right
};

/// `graph` takes any batch size. The same for any number of jobs. Throws Interrupted on Ctrl-C.
Judgement judge(const model::Graph& graph, model::ValueId wanted, const LossForm& form, const Samples& data, int jobs);

}  // namespace netmend::training
