// What-if of every unit against evaluating each changed network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace netmend::bench {

/// Where what-if runs, as --device says.
extern std::string device;

/// One change of each unit's own weights, for all layers or the last `layers`: seconds of a plain pass, of what-if of
/// all changes, and what operations alone would allow.
nlohmann::json whatif(const std::string& model, const std::string& data, int64_t limit, int layers, int jobs);
/// The same for patches of `weights` single weights in the last two layers, `patches` of them, as a search tries them.
nlohmann::json patches(const std::string& model, const std::string& data, int64_t limit, int weights, int patches,
                       int jobs);

/// `count` mutants of a network by operators: seconds of a plain pass, and of judging all mutants by class.
nlohmann::json mutants(const std::string& model, const std::string& data, int64_t limit, int count,
                       const std::string& operators, int jobs);

}  // namespace netmend::bench
