// What the judged output of a network is.
#pragma once

#include "model/ids.h"

namespace netmend::executor {

enum class OutputKind { kLogits, kProbabilities, kLogProbabilities, kSigmoid };

struct Head {
  model::ValueId output = model::kAbsent;  ///< as in the file
  model::ValueId logits = model::kAbsent;  ///< before a final softmax or sigmoid: what the loss is taken from
  OutputKind output_kind = OutputKind::kLogits;

  /// Nothing stands before the probabilities (or their logarithms) that the loss could be taken from.
  bool without_logits() const { return logits == output && output_kind != OutputKind::kLogits; }
};

}  // namespace netmend::executor
