// The loops over feature maps, compiled for several vector widths. Lanes are fixed, so sums do not depend on the width.
#pragma once

#include <cstdint>

namespace netmend::observers {

struct MapSummary {
  float sum = 0, low = 0, high = 0;
};

/// Sum and extremes of `count` values, which are rectified first if asked for. `out`, when given, gets the values.
MapSummary summarise_map(const float* map, int64_t count, bool rectify, float* out);
/// The same for maps whose channels lie innermost: sums by channel, extremes of all.
MapSummary summarise_channels(const float* map, int64_t positions, int64_t channels, bool rectify, float* sums);

}  // namespace netmend::observers
