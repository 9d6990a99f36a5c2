// Figures as people and programs read them; one form everywhere.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "stats/intervals.h"

namespace netmend::observers {

/// `91.3 % (90.7–91.8)`, `0.42 (0.40–0.44)`: by the metric whether it is a share.
std::string figure_text(const std::string& metric, const stats::Estimate& estimate);
/// `+1.2 points (+0.4 to +2.0)`
std::string points_text(const stats::Estimate& change, int digits = 1);
/// `91.3 %`
std::string percent_text(double share);
/// {"value", "low", "high"}, null where it is not finite.
nlohmann::ordered_json estimate_json(const stats::Estimate& estimate);
/// A number, or null where it is not finite.
nlohmann::ordered_json number_json(double value);

}  // namespace netmend::observers
