// What can be changed in a training, by name: learning rate, optimiser, activation function … The same names for
// netmend's own trainer and for programs that expose them (docs/training.md).
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace netmend::healing {

using Json = nlohmann::ordered_json;
using Settings = std::map<std::string, Json>;

struct Knob {
  Json current;
  std::vector<Json> choices;  ///< what may be tried, the current value among them
  bool open = false;          ///< a number that may take other values as well
};
using Knobs = std::map<std::string, Knob>;

Settings current_settings(const Knobs& knobs);
/// One name for each thing: `lr` and `learning_rate` are `rate`, `optimizer` is `optimiser` …
std::string usual_name(const std::string& name);
/// Values that are worth trying for a setting of this name; empty where nobody knows.
std::vector<Json> usual_choices(const std::string& usual, const Json& current);
/// `rate 0.1 → 0.01, init he`, of those that differ.
std::string changes_text(const Settings& from, const Settings& to);
Json settings_json(const Settings& settings);

}  // namespace netmend::healing
