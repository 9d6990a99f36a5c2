// Does a model predict as the framework did that trained it, and are its inputs prepared in the same way? No tensors:
// commands and other people's programs call it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "stream/input_fit.h"
#include "stream/match.h"

namespace netmend::session {

struct MatchRequest {
  std::string model, reference;  ///< reference: the NPZ file of recorded inputs and outputs
  std::string data;              ///< that the reference was made of; "": the test data of netmend.toml
  std::string config;            ///< netmend.toml; "": looked for
  stream::MatchOptions options;
  std::function<void(const std::string&)> note;  ///< told what the user should know; may be empty
};

struct ReferenceMatch {
  stream::Match match;                     ///< `reason` speaks of the inputs too where they differ
  std::optional<stream::InputFit> inputs;  ///< nothing when no data was compared
  std::string framework;                   ///< that made the reference; may be empty
};
/// Throws InputError when model, reference and data cannot belong together.
ReferenceMatch match_reference(const MatchRequest& request);

}  // namespace netmend::session
