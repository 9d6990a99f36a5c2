// Which label number means which output of the model, when they were numbered differently.
#pragma once

#include <cstdint>
#include <vector>

#include "observers/predictions.h"

namespace netmend::preflight {

/// The one-to-one renumbering of labels under which most predictions are right.
std::vector<int64_t> best_assignment(const observers::PredictionSettings& settings,
                                     const std::vector<observers::SampleRow>& rows);
/// For each row of a square matrix its column, so that the sum of the chosen entries is largest (Kuhn 1955, in the form
/// of Jonker and Volgenant).
std::vector<int64_t> largest_assignment(const std::vector<std::vector<double>>& worth);

}  // namespace netmend::preflight
