// The layer that gives the outputs, as the cheap repairs change it.
#pragma once

#include <string>
#include <vector>

#include "repair/problem.h"

namespace netmend::repair {

/// Logits of some samples, float64 inputs × outputs, and their labels as the data has them.
struct Logits {
  at::Tensor values, labels;
};
Logits logits_of(const Problem& problem, const std::vector<int64_t>& samples);

/// Edits that turn the logits z into scale · z + shift (one number per output; empty for none). `why_not` says why that
/// cannot be done: no bias, no linear layer at the end.
struct Rescaled {
  std::vector<edits::Edit> edits;
  std::string why_not;
};
Rescaled rescale(const Problem& problem, double scale, const std::vector<double>& shift);

}  // namespace netmend::repair
