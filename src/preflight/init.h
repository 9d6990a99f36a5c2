// netmend.toml drafted from what model and data tell, each value with its source. No tensors: commands and other
// people's programs call it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "preflight/preflight.h"
#include "session/toml_edit.h"

namespace netmend::preflight {

struct InitRequest {
  std::string model, data, train, test, output;
  std::string config;   ///< netmend.toml whose data is used where no flag names any; "": looked for beside the model
  bool update = false;  ///< add what is missing to a file that is there; nothing of it changes
  int jobs = 0;
};

struct ConfigDraft {
  std::string file;                    ///< netmend.toml beside the model
  bool existed = false;                ///< the file is there already
  std::string text;                    ///< what it would hold
  std::vector<session::Fact> facts;    ///< in the order of the file
  std::optional<Preflight> preflight;  ///< of the draft; nothing without data
  std::vector<Blocker> adopted;        ///< blockers whose line of netmend.toml is in the draft now
  std::string metric;                  ///< of the inferred task; "" without data
  bool blocked() const { return preflight && preflight->blocker; }
  /// The blocker that is left, as a finding whose next command is a check.
  findings::Finding finding() const;
  std::string model;
  std::string input;  ///< the model's first input, as a key of netmend.toml
};

/// Opens the data as the facts so far say, infers the task, and adopts what the preflight finds. Writes nothing. Throws
/// InputError.
ConfigDraft draft_config(const InitRequest& request);

}  // namespace netmend::preflight
