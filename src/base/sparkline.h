// A curve in a line of text.
#pragma once

#include <span>
#include <string>

namespace netmend {

/// At most 32 blocks of different height; × for what is NaN or Inf.
std::string sparkline(std::span<const double> values);

}  // namespace netmend
