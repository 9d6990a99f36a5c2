#include "base/sparkline.h"

#include <algorithm>
#include <cmath>

namespace netmend {

std::string sparkline(std::span<const double> values) {
  static const char* bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = INFINITY, high = -INFINITY;
  for (double value : values)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  std::string text;
  const size_t count = std::min<size_t>(values.size(), 32);
  for (size_t i = 0; i < count; ++i) {
    const double value = values[i * values.size() / count];
    text += std::isfinite(value) ? bars[std::min(7, int(8 * (high > low ? (value - low) / (high - low) : 0)))] : "×";
  }
  return text;
}

}  // namespace netmend
