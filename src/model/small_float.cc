#include "model/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace netmend::model {
namespace {

struct Format {
  Element type;
  int exponent, mantissa, bias;  ///< bits, bits, what is added to the exponent
  uint8_t largest;               ///< code of the largest finite value
  int infinity, nan;             ///< codes; -1 where there is none
  bool negative_zero;
};

constexpr Format kFormats[] = {
    {Element::kFloat8E4M3FN, 4, 3, 7, 0x7e, -1, 0x7f, true},
    {Element::kFloat8E4M3FNUZ, 4, 3, 8, 0x7f, -1, 0x80, false},
    {Element::kFloat8E5M2, 5, 2, 15, 0x7b, 0x7c, 0x7e, true},
    {Element::kFloat8E5M2FNUZ, 5, 2, 16, 0x7f, -1, 0x80, false},
    {Element::kFloat4E2M1, 2, 1, 1, 0x07, -1, -1, true},
};

const Format& format_of(Element type) {
  for (const Format& format : kFormats)
    if (format.type == type) return format;
  fail("{} is no small float", element_name(type));
}

float magnitude(const Format& f, int code) {
  const int exponent = code >> f.mantissa, rest = code & ((1 << f.mantissa) - 1);
  if (exponent == 0) return std::ldexp(float(rest), 1 - f.bias - f.mantissa);
  return std::ldexp(float((1 << f.mantissa) + rest), exponent - f.bias - f.mantissa);
}

bool is_nan_code(const Format& f, uint8_t code) {
  if (f.nan < 0) return false;
  return f.nan == 0x80 ? code == 0x80 : (code & 0x7f) > std::max<int>(f.largest, f.infinity);
}

/// Codes of positive values count upwards, so that a carry out of the mantissa is the next exponent.
int nearest_code(const Format& f, double value) {
  const int exponent = std::max(value > 0 ? std::ilogb(value) : 1 - f.bias, 1 - f.bias);
  const auto steps = int64_t(std::nearbyint(std::ldexp(value, f.mantissa - exponent)));
  return int(steps + (int64_t(exponent + f.bias - 1) << f.mantissa));
}

constexpr uint8_t kPowerNan = 0xff;  // of E8M0: codes are exponents plus 127

uint8_t power_code(double value, const Narrowing& how) {
  if (std::isnan(value) || value < 0) return kPowerNan;
  if (value == 0) return how.saturate ? 0 : kPowerNan;
  if (std::isinf(value)) return how.saturate ? 254 : kPowerNan;
  const int floor = std::ilogb(value);
  const double part = std::ldexp(value, -floor);  // 1 ≤ part < 2
  const bool up = how.rounding == Narrowing::kUp ? part > 1 : how.rounding == Narrowing::kNearest && part >= 1.5;
  const int code = floor + up + 127;
  if (!how.saturate && (code < 0 || code > 254)) return kPowerNan;
  return uint8_t(std::clamp(code, 0, 254));
}

}  // namespace

bool is_small_float(Element type) {
  return type == Element::kFloat8E8M0 ||
         std::any_of(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.type == type; });
}

float small_to_float(Element type, uint8_t code) {
  if (type == Element::kFloat8E8M0)
    return code == kPowerNan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, int(code) - 127);
  const Format& f = format_of(type);
  if (is_nan_code(f, code)) return std::numeric_limits<float>::quiet_NaN();
  const int sign = 1 << (f.exponent + f.mantissa), rest = code & (sign - 1);
  const float value = rest == f.infinity ? std::numeric_limits<float>::infinity() : magnitude(f, rest);
  return code & sign ? -value : value;
}

uint8_t float_to_small(Element type, double value, const Narrowing& how) {
  if (type == Element::kFloat8E8M0) return power_code(value, how);
  const Format& f = format_of(type);
  const int sign_bit = 1 << (f.exponent + f.mantissa);
  if (std::isnan(value)) return uint8_t(f.nan >= 0 ? f.nan : sign_bit);  // -0 where there is no NaN, as others do
  const auto sign = uint8_t(std::signbit(value) ? sign_bit : 0);
  const bool saturate = how.saturate || f.nan < 0;
  int code = std::isinf(value) ? f.largest + 1 : nearest_code(f, std::abs(value));
  if (code > f.largest && saturate) code = f.largest;
  if (code > f.largest)
    return f.infinity >= 0 ? uint8_t(sign | f.infinity) : f.nan == 0x80 ? 0x80 : uint8_t(sign | f.nan);
  return code == 0 && !f.negative_zero ? 0 : uint8_t(sign | code);
}

}  // namespace netmend::model
