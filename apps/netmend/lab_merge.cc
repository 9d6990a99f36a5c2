// netmend lab merge: the shards of a pass put together; the result is that of one pass, bit for bit.
#include "base/error.h"
#include "netmend/show.h"
#include "stream/state_file.h"

namespace netmend::app {

int lab_merge(const Common& common, const MergeOptions& options) {
  stream::StateFile header = stream::read_state_header(options.states.at(0));
  if (header.observer != "predictions") fail("{}: states of {} cannot be printed", options.states[0], header.observer);
  observers::PredictionSettings settings;
  std::string model;
  double seconds = 0;
  try {
    settings = observers::settings_from_json(nlohmann::json::parse(header.description).at("settings"));
  } catch (const nlohmann::json::exception&) {
    fail("{}: the state file is damaged", options.states[0]);
  }
  observers::Predictions observer(settings, false);
  std::vector<stream::StateFile> files;
  for (const std::string& path : options.states) {
    files.push_back(stream::read_state(path, observer));
    auto about = nlohmann::json::parse(files.back().description, nullptr, false);
    if (about.is_object()) seconds += about.value("seconds", 0.0), model = about.value("model", "");
  }
  stream::Collected whole = stream::join_states(std::move(files), options.states);
  auto state = whole.fold(observer);
  auto result = observers::finish(observer, dynamic_cast<const observers::PredictionState&>(*state));
  if (common.json) {
    print_json(result_json(settings, result, seconds));
  } else {
    fmt::print("{}  on {} ({} parts)\n", model, settings.data, options.states.size());
    print_result(settings, result, seconds);
  }
  return 0;
}

}  // namespace netmend::app
