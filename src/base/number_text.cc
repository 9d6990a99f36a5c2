#include "base/number_text.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace netmend {

bool is_not_finite(const std::string& text) {
  double number = 0;
  return parse_double(text, number) && !std::isfinite(number);
}

bool is_beyond_64_bits(const std::string& text) {
  errno = 0;
  if (text.starts_with('-'))
    std::strtoll(text.c_str(), nullptr, 0);
  else
    std::strtoull(text.c_str(), nullptr, 0);
  return errno == ERANGE;
}

}  // namespace netmend
