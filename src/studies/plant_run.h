// A known fault in a sound model, and the truth about it. No tensors: commands and other programs call it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace netmend::session {
class Session;
}

namespace netmend::studies {

struct PlantRequest {
  std::string kind;            ///< of faults::kinds()
  std::string layer;           ///< only there; "": any but the output layer
  std::string product, truth;  ///< files; `truth` may be ""
  int64_t count = 1;           ///< units
  double strength = 1;         ///< 1 is a fault of the usual size
  double at_least = 0;         ///< drawn again until it costs so many points of accuracy; 0: the first will do
  double at_most = 100;        ///< and no more
};

struct PlantedFault {
  std::string kind, layer, classes;  ///< `layer` and `classes` where the kind has them
  std::vector<std::string> units;
  int64_t edits = 0;
  uint64_t seed = 0;  ///< of the draw that was taken
  bool judged = false;
  double before = 0, after = 0;  ///< accuracy, where there is data
  double points() const { return 100 * (before - after); }
};

/// Writes the faulty model, and the truth with its edits. Without data in the session nothing is judged. Throws
/// InputError.
PlantedFault plant(session::Session& session, const PlantRequest& request);
nlohmann::ordered_json to_json(const std::string& model, const PlantRequest& request, const PlantedFault& fault);

}  // namespace netmend::studies
