// A check is a row of a table: its name, the kinds of findings it may raise, what it needs, what it wants to be
// observed, and a function of what was seen.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "findings/kinds.h"

namespace netmend::checks {

struct Observed;
struct Results;

/// A value that was fine.
struct Passed {
  std::string what, value;
};
/// Something that was not looked at, and what would enable it.
struct Skipped {
  std::string what, enable;
};

struct Check {
  std::string_view name;   ///< as --only and --skip take it
  std::string_view about;  ///< what is looked at, for --list and for the line under `skipped`
  std::vector<std::string_view> kinds;
  unsigned needs = 0;    ///< findings::Needs
  unsigned watches = 0;  ///< Watch
  void (*run)(Observed& seen, Results& out) = nullptr;
  std::string_view unless = "";  ///< a kind whose finding makes this check meaningless
};

/// All of them, in the order they run.
std::span<const Check> checks();
/// Throws InputError with the nearest name.
const Check& find_check(const std::string& name);

}  // namespace netmend::checks
