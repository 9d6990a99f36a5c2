#include "healing/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace netmend::healing {

Settings current_settings(const Knobs& knobs) {
  Settings settings;
  for (const auto& [name, knob] : knobs) settings[name] = knob.current;
  return settings;
}

std::string usual_name(const std::string& name) {
  static const std::map<std::string, std::string> names = {{"lr", "rate"},
                                                           {"learning_rate", "rate"},
                                                           {"optimizer", "optimiser"},
                                                           {"batch_size", "batch"},
                                                           {"initializer", "init"},
                                                           {"kernel_initializer", "init"},
                                                           {"weight_decay", "decay"},
                                                           {"l2", "decay"},
                                                           {"clip_value", "clip"},
                                                           {"clipvalue", "clip"},
                                                           {"batch_normalization", "batch_norm"},
                                                           {"standardize", "scale_inputs"},
                                                           {"normalize", "scale_inputs"}};
  const std::string word = lower(name);
  const auto found = names.find(word);
  return found == names.end() ? word : found->second;
}

std::vector<Json> usual_choices(const std::string& usual, const Json& current) {
  static const std::map<std::string, std::vector<Json>> table = {{"rate", {1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0}},
                                                                 {"momentum", {0.0, 0.5, 0.9}},
                                                                 {"decay", {0.0, 1e-3, 1e-2}},
                                                                 {"clip", {0.0, 10.0}},
                                                                 {"batch", {16, 32, 64, 128}},
                                                                 {"dropout", {0.0, 0.25, 0.5}},
                                                                 {"optimiser", {"sgd", "momentum", "adam", "rmsprop"}},
                                                                 {"activation", {"relu", "selu", "tanh", "elu"}},
                                                                 {"init", {"he", "glorot"}},
                                                                 {"schedule", {"constant", "cosine"}},
                                                                 {"batch_norm", {false, true}},
                                                                 {"scale_inputs", {false, true}},
                                                                 {"scale_targets", {false, true}},
                                                                 {"shuffle", {false, true}},
                                                                 {"class_weights", {false, true}}};
  std::vector<Json> choices;
  if (usual == "epochs" && current.is_number())
    choices = {current, std::max<int64_t>(1, current.get<int64_t>()) * 3};
  else if (const auto found = table.find(usual); found != table.end())
    choices = found->second;
  if (std::none_of(choices.begin(), choices.end(), [&](const Json& one) { return one == current; }))
    choices.insert(choices.begin(), current);
  return choices;
}

std::string changes_text(const Settings& from, const Settings& to) {
  auto text = [](const Json& value) {
    if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
    return value.is_string() ? (value == "" ? std::string("as it is") : value.get<std::string>()) : json_text(value);
  };
  std::vector<std::string> words;
  for (const auto& [name, value] : to)
    if (const auto old = from.find(name); old == from.end() || old->second != value)
      words.push_back(fmt::format("{} {} → {}", name, old == from.end() ? "–" : text(old->second), text(value)));
  return join(words, ", ");
}

Json settings_json(const Settings& settings) {
  Json json = Json::object();
  for (const auto& [name, value] : settings) json[name] = value;
  return json;
}

}  // namespace netmend::healing
