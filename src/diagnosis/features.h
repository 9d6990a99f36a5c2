// A run as numbers, for what is learned from many of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "diagnosis/run.h"

namespace netmend::diagnosis {

/// What stands for a number that the record does not show.
inline constexpr double kUnknown = -99;

/// By name, always the same ones in the same order. Facts that exact checks speak of are not among them.
std::vector<std::pair<std::string, double>> features_of(const Run& run);

}  // namespace netmend::diagnosis
