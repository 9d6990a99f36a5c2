// The pair of features that JSMA changes: exact, in memory of the order of the features.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace netmend::inputs {

/// Over pairs p ≠ q with alpha_p + alpha_q > 0 and beta_p + beta_q < 0, one that makes −(alpha_p + alpha_q)(beta_p +
/// beta_q) largest; {-1, -1} when there is none. `free` says which features may still change. Values that are not
/// numbers are passed over.
std::pair<int64_t, int64_t> best_pair(std::span<const float> alpha, std::span<const float> beta,
                                      std::span<const uint8_t> free);

}  // namespace netmend::inputs
