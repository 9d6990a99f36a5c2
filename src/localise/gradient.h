// The part that each unit has in the loss, to first order: activation × gradient of the loss at the unit, added up over
// positions. It is how much the loss would fall, roughly, if the unit were ablated to zero. Padded positions count by
// what they do to the loss.
#pragma once

#include <vector>

#include "localise/ranking.h"
#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::localise {

/// Over the inputs named, each on its side. The loss is the one that predictions report: cross-entropy, binary
/// cross-entropy or squared error of one input. Layers that no gradient reaches stay 0, as do inputs whose loss is not
/// a number. The number of workers (0: one per core) changes nothing.
Evidence gradient_evidence(const stream::Subject& subject, const observers::PredictionSettings& settings,
                           const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                           const std::vector<int64_t>& passing, int jobs);

/// The loss of each input, differentiable: `columns` as observers::as_columns gives them.
at::Tensor losses(const observers::PredictionSettings& settings, const at::Tensor& columns, const at::Tensor& labels);

}  // namespace netmend::localise
