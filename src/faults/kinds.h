// The kinds of faults that can be planted. One row per kind.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace netmend::faults {

struct Kind {
  std::string_view name;   ///< `random-weights`
  std::string_view story;  ///< what happened, in words
  enum Of { kUnit, kLayer, kClasses, kTraining } of = kUnit;
};
std::span<const Kind> kinds();
/// Throws InputError with the nearest name.
const Kind& find_kind(const std::string& name);
/// Their names with commas, for help and messages.
std::string kind_names();

}  // namespace netmend::faults
