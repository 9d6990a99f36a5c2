// Small helpers for words and numbers that people read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace netmend {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string lower(std::string_view text);

/// Names from files may hold anything: control characters, which a terminal acts on, become `?`.
std::string printable(std::string_view text);

/// The same without bytes that are no UTF-8, for files that must be; they become U+FFFD.
std::string utf8(std::string_view text);

/// 1×28×28; "scalar" for no axes; negative sizes print as `?`.
std::string shape_text(std::span<const int64_t> shape);
/// 107,786
std::string with_commas(int64_t number);
/// 48 s, 4 min, 4 h 11 min
std::string duration_text(double seconds);
/// 4.1 MB
std::string bytes_text(double bytes);

/// Whole-string numbers; false when `text` is anything else.
bool parse_int(std::string_view text, int64_t& out);
bool parse_double(std::string_view text, double& out);
/// 512M, 16G, 1.5k …, in bytes. Throws InputError.
int64_t parse_bytes(std::string_view text);

/// 90, 30s, 10m, 2h …, in seconds. Throws InputError.
double parse_seconds(std::string_view text);

/// Hands out names that are all different: what comes again gets a number. Each name remembers how far its numbers are
/// used up; a file that has one name for everything would otherwise take the square of its size.
class UniqueNames {
 public:
  /// `name`, or `name` + `between` + number + `behind`, the first that is free, from `first` on.
  std::string add(const std::string& name, std::string_view between = "_", int64_t first = 2,
                  std::string_view behind = "");

 private:
  std::unordered_map<std::string, int64_t> taken_;  ///< the next number to try
};

/// The candidate nearest to `name` by edit distance when near enough to be a slip of the finger, else "".
std::string nearest(std::string_view name, std::span<const std::string> candidates);
/// ` (did you mean conv1?)` or ``.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace netmend
