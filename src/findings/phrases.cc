#include "findings/phrases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace netmend::findings {
namespace {

constexpr double kLeastP = 1e-12;  ///< beyond, rounding decides

/// Digits after the point, one at least, so that a share that is neither 0 nor all does not look so.
int digits_of(double share) {
  const double away = 100 * std::min(std::abs(share), std::abs(1 - share));
  if (!(away > 0)) return 0;
  int digits = 1;
  while (digits < 6 && away < 0.5 * std::pow(10.0, -digits)) ++digits;
  return digits;
}

/// `5e-5`, `1.2e10`, as people write an exponent.
std::string short_exponent(std::string text) {
  const size_t at = text.find('e');
  if (at == text.npos) return text;
  if (text[at + 1] == '+') text.erase(at + 1, 1);
  const size_t digits = text.find_first_of("0123456789", at + 1);
  while (text[digits] == '0' && digits + 1 < text.size()) text.erase(digits, 1);
  return text;
}

std::string digits_text(double share) { return fmt::format("{:.{}f}", 100 * share, digits_of(share)); }

}  // namespace

std::string counted(int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  const std::string more = many.empty() ? std::string(one) + "s" : std::string(many);
  return fmt::format("{} {}", count == 0 ? "no" : with_commas(count), more);
}

std::string p_text(double p) {
  if (std::isnan(p)) return "p unknown";
  if (p < kLeastP) return "p < 1e-12";
  if (p >= 0.01) return fmt::format("p = {:.2g}", std::min(p, 1.0));
  return "p = " + short_exponent(p >= 1e-4 ? fmt::format("{:.1g}", p) : fmt::format("{:.0e}", p));
}

std::string percent(double share) { return std::isfinite(share) ? digits_text(share) + " %" : "–"; }

std::string percent_range(double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high)) return "unknown";
  const std::string a = digits_text(low), b = digits_text(high);
  return a == b ? a : a + "–" + b;
}

std::string points(double share) {
  if (!std::isfinite(share)) return "unknown";
  const double value = 100 * share;
  int digits = 1;
  while (value != 0 && digits < 4 && std::abs(value) < 0.5 * std::pow(10.0, -digits)) ++digits;
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text == "1.0") return "1 point";
  return (text == "0.0" || text == "-0.0" ? "0" : text) + " points";
}

std::string times(double factor) {
  if (!(factor < 1e6)) return plain(factor);
  return factor < 9.95 ? fmt::format("{:.1f}", factor) : with_commas(std::llround(factor));
}

std::string plain(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "Inf" : "-Inf";
  const double size = std::abs(value);
  if (size >= 1000 && size < 1e7) return with_commas(std::llround(value));
  return short_exponent(fmt::format("{:.4g}", value == 0 ? 0.0 : value));
}

}  // namespace netmend::findings
