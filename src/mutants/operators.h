// Mutation operators for trained networks, by name. A new operator is one row of operators.cc. No tensors: help and
// messages come from here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netmend::mutants {

enum class Level { kWeight, kUnit, kLayer };
std::string_view level_name(Level level);

struct Operator {
  std::string_view name;    ///< `gf`
  std::string_view source;  ///< the papers, with commas: deepmutation, deepmutation++, munn, muff, deepmufl
  std::string_view words;   ///< what it does
  Level level = Level::kUnit;
  bool usual = true;  ///< part of `all`
};

/// All of them, in the order of the table.
std::span<const Operator* const> operators();
std::vector<std::string> sources_of(const Operator& op);
/// Their names with commas, for help and messages.
std::string operator_names();
/// Names and sources separated by commas (`gf,neb`, `munn`); `all` for the usual ones. Throws InputError with the
/// nearest name.
std::vector<const Operator*> find_operators(const std::string& list);

}  // namespace netmend::mutants
