#include "observers/coverage/map_loops.h"

#include <algorithm>
#include <limits>

#include "ops/vector_clones.h"

namespace netmend::observers {
namespace {

constexpr int64_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Lanes {
  float sum[kLanes], low[kLanes], high[kLanes];
};

NETMEND_INLINE void start(Lanes& lanes) {
  for (int64_t i = 0; i < kLanes; ++i) lanes.sum[i] = 0, lanes.low[i] = kInfinity, lanes.high[i] = -kInfinity;
}

NETMEND_INLINE MapSummary fold(const Lanes& lanes) {
  MapSummary all{0, kInfinity, -kInfinity};
  for (int64_t i = 0; i < kLanes; ++i) {
    all.sum += lanes.sum[i];
    all.low = std::min(all.low, lanes.low[i]);
    all.high = std::max(all.high, lanes.high[i]);
  }
  return all;
}

/// A value that is not a number stays one in the sum and is passed over by the extremes.
NETMEND_INLINE void take(float value, float& sum, float& low, float& high) {
  sum += value;
  low = value < low ? value : low;
  high = value > high ? value : high;
}

template <bool rectify>
NETMEND_INLINE MapSummary over_map(const float* map, int64_t count, float* out) {
  Lanes lanes;
  start(lanes);
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes)
    for (int64_t i = 0; i < kLanes; ++i) {
      float value = map[at + i];
      if (rectify) value = value < 0 ? 0 : value;
      if (out) out[at + i] = value;
      take(value, lanes.sum[i], lanes.low[i], lanes.high[i]);
    }
  for (int64_t i = 0; at < count; ++at, ++i) {
    float value = map[at];
    if (rectify) value = value < 0 ? 0 : value;
    if (out) out[at] = value;
    take(value, lanes.sum[i], lanes.low[i], lanes.high[i]);
  }
  return fold(lanes);
}

template <bool rectify>
NETMEND_INLINE MapSummary over_channels(const float* map, int64_t positions, int64_t channels, float* sums) {
  MapSummary all{0, kInfinity, -kInfinity};
  std::fill(sums, sums + channels, 0.0f);
  for (int64_t first = 0; first < channels; first += kLanes) {
    Lanes lanes;
    start(lanes);
    const int64_t width = std::min(kLanes, channels - first);
    const float* at = map + first;
    for (int64_t p = 0; p < positions; ++p, at += channels)
      for (int64_t i = 0; i < width; ++i) {
        float value = at[i];
        if (rectify) value = value < 0 ? 0 : value;
        take(value, lanes.sum[i], lanes.low[i], lanes.high[i]);
      }
    std::copy(lanes.sum, lanes.sum + width, sums + first);
    MapSummary part = fold(lanes);
    all.low = std::min(all.low, part.low);
    all.high = std::max(all.high, part.high);
  }
  return all;
}

}  // namespace

NETMEND_VECTOR_CLONES MapSummary summarise_map(const float* map, int64_t count, bool rectify, float* out) {
  if (!out) return rectify ? over_map<true>(map, count, nullptr) : over_map<false>(map, count, nullptr);
  return rectify ? over_map<true>(map, count, out) : over_map<false>(map, count, out);
}

NETMEND_VECTOR_CLONES MapSummary summarise_channels(const float* map, int64_t positions, int64_t channels, bool rectify,
                                                    float* sums) {
  return rectify ? over_channels<true>(map, positions, channels, sums)
                 : over_channels<false>(map, positions, channels, sums);
}

}  // namespace netmend::observers
