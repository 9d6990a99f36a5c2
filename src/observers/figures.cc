#include "observers/figures.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "observers/task.h"

namespace netmend::observers {

std::string figure_text(const std::string& metric, const stats::Estimate& e) {
  if (std::isnan(e.value)) return "–";
  if (metric == "auc" || is_error(metric)) return fmt::format("{:.4g} ({:.4g}–{:.4g})", e.value, e.low, e.high);
  return fmt::format("{:.2f} % ({:.1f}–{:.1f})", 100 * e.value, 100 * e.low, 100 * e.high);
}

std::string points_text(const stats::Estimate& change, int digits) {
  return fmt::format("{:+.{}f} points ({:+.{}f} to {:+.{}f})", 100 * change.value, digits, 100 * change.low, digits,
                     100 * change.high, digits);
}

std::string percent_text(double share) { return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "–"; }

nlohmann::ordered_json number_json(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json estimate_json(const stats::Estimate& e) {
  return {{"value", number_json(e.value)}, {"low", number_json(e.low)}, {"high", number_json(e.high)}};
}

}  // namespace netmend::observers
