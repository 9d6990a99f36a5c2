#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace netmend {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == text.npos ? text.npos : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  const char* blanks = " \t\r\n\f\v";
  size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  return out;
}

namespace {

/// Bytes of the character that begins at `at` in UTF-8; 0 when there is none such, or one that a terminal acts on.
size_t character_bytes(std::string_view text, size_t at, bool any_control = false) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return any_control || (first >= 0x20 && first != 0x7f) ? 1 : 0;
  const size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + count > text.size()) return 0;
  uint32_t code = first & (0x7fu >> count);
  for (size_t i = at + 1; i < at + count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  // Beyond ASCII: what begins a line, and what turns the order of the characters behind it.
  const bool turns = code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  const bool control = (code < 0xa0 || turns) && !any_control, surrogate = code >= 0xd800 && code < 0xe000;
  const bool longer_than_needed = (count == 3 && code < 0x800) || (count == 4 && code < 0x10000);
  return control || surrogate || longer_than_needed || code > 0x10ffff ? 0 : count;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t count = character_bytes(text, at);
    out += count > 0 ? text.substr(at, count) : std::string_view("?");
    at += std::max<size_t>(count, 1);
  }
  return out;
}

std::string utf8(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t count = character_bytes(text, at, true);
    out += count > 0 ? text.substr(at, count) : std::string_view("\xef\xbf\xbd");
    at += std::max<size_t>(count, 1);
  }
  return out;
}

std::string UniqueNames::add(const std::string& name, std::string_view between, int64_t first,
                             std::string_view behind) {
  if (taken_.emplace(name, first).second) return name;
  for (;;) {
    std::string next = fmt::format("{}{}{}{}", name, between, taken_[name]++, behind);
    if (taken_.emplace(next, first).second) return next;
  }
}

std::string shape_text(std::span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (int64_t size : shape) out += (out.empty() ? "" : "×") + (size < 0 ? std::string("?") : std::to_string(size));
  return out;
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (int at = int(digits.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) digits.insert(size_t(at), ",");
  return digits;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 6) bytes /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 1 : 0, units[unit]);
}

bool parse_int(std::string_view text, int64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_double(std::string_view text, double& out) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

int64_t parse_bytes(std::string_view text) {
  std::string_view number = text;
  double factor = 1;
  if (!number.empty() && (number.back() == 'B' || number.back() == 'b')) number.remove_suffix(1);
  if (!number.empty()) {
    const char* prefixes = "kmgt";
    const char* hit = std::find(prefixes, prefixes + 4, char(number.back() | 0x20));
    if (hit != prefixes + 4) {
      factor = std::pow(1024.0, hit - prefixes + 1);
      number.remove_suffix(1);
    }
  }
  double value = 0;
  if (!parse_double(number, value) || !(value * factor >= 1) || value * factor > 9e18)
    fail("'{}' is not an amount of memory (try 512M or 8G)", text);
  return int64_t(value * factor);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "no end";
  auto whole = int64_t(std::ceil(seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", (whole + 30) / 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

double parse_seconds(std::string_view text) {
  std::string_view number = text;
  double unit = 1, value = 0;
  if (!number.empty() && (number.back() == 's' || number.back() == 'm' || number.back() == 'h')) {
    unit = number.back() == 's' ? 1 : number.back() == 'm' ? 60 : 3600;
    number.remove_suffix(1);
  }
  if (!parse_double(number, value) || !(value > 0) || !std::isfinite(value))
    fail("--budget {}: expected quick, normal, deep or a time such as 90s, 30m, 2h", text);
  return value * unit;
}

namespace {
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}
}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  std::string wanted = lower(name.substr(0, 200));
  // A file may hold any number of names: the first thousands are enough for a slip of the finger.
  for (const std::string& candidate : candidates.first(std::min<size_t>(candidates.size(), 10'000))) {
    const size_t length = std::min<size_t>(candidate.size(), 200);
    if (std::max(length, wanted.size()) - std::min(length, wanted.size()) >= best_distance) continue;
    size_t distance = edit_distance(wanted, lower(std::string_view(candidate).substr(0, 200)));
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  std::string hit = nearest(name, candidates);
  return hit.empty() ? "" : fmt::format(" (did you mean {}?)", hit);
}

}  // namespace netmend
