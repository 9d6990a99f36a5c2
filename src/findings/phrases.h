// Counts, shares and p-values as findings write them: true for 0, 1, all and few, and never more exact than they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace netmend::findings {

/// `1 input`, `2,304 inputs`, `no inputs`; `many` where an s is not enough.
std::string counted(int64_t count, std::string_view one, std::string_view many = "");
/// `p = 5e-5`, `p = 0.007`, `p = 0.03`, `p < 1e-12`: never 0, and 1 at most.
std::string p_text(double p);
/// `91.3 %`; as many digits as show that a share is neither 0 nor all (`99.98 %`, `0.004 %`), and `0 %`, `100 %` where
/// it is; `–` where it is unknown.
std::string percent(double share);
/// `90.7–91.8`, the limits of a share in percent; `100` where both are the same.
std::string percent_range(double low, double high);
/// `9.0 points`, `1 point`; `0.04 points`.
std::string points(double share);
/// A measured number with four digits at most: `0.485`, `1,867`, `1.2e7`.
std::string plain(double value);
/// How many times as large, with two digits: 5.0, 10, 1,200.
std::string times(double factor);

}  // namespace netmend::findings
