// netmend.toml: what an ONNX file cannot tell. Looked for beside the model, then upwards from the working directory.
// Limits, acceptances and the choice of checks are the user's: a file beside a model in another folder may be a
// stranger's, as the model may be, and decides none of them unless --config names it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "findings/accepted.h"
#include "observers/task.h"

namespace netmend::session {

/// Inputs that someone has accepted as known: counted apart, never hidden.
struct AcceptedInputs {
  std::string file;  ///< relative to the working directory
  std::string reason, until;
};

struct Config {
  std::string path;                    ///< "" when there is none
  std::string model;                   ///< model.file, relative to the working directory
  std::string output;                  ///< model.output
  std::string reference;               ///< model.reference: saved outputs of the original framework
  observers::TaskOverrides overrides;  ///< model.kind, model.output_kind and what goal says about predictions
  double expect = -1;                  ///< goal.expect; below 0 when it is not given
  std::string train, test;             ///< data specs, paths relative to the working directory
  std::string id, meta;                ///< data.id, data.meta
  std::vector<std::string> groups;     ///< data.groups
  std::vector<std::string> classes;
  std::map<std::string, std::string>
      input;  ///< preprocessing as spec options: scale, mean, std, layout, color, resize, crop …
  std::vector<std::pair<std::string, std::string>> gate;  ///< criterion and limit, in the file's order
  std::map<std::string, int64_t> gate_lines;              ///< where each criterion stands, for messages
  std::vector<findings::Acceptance> accepted;             ///< accept."KIND:WHERE"
  std::vector<AcceptedInputs> accepted_inputs;            ///< accept."inputs:FILE"
  std::vector<std::string> checks_only, checks_skip;      ///< checks.only, checks.skip
  std::string decides;    ///< the file that these five come from; "" where there is none
  std::string undecided;  ///< what a file beside the model says of them and is not asked for: `gate, accept`; or ""
};

/// `named` is the file of --config, or "". Throws InputError: an unknown key suggests the nearest, a wrong type names
/// key, line and what was expected. Paths in the file are relative to it.
Config read_config(const std::string& named, const std::string& model);
/// The same of text that is not in a file yet; `path` is where it would lie.
Config parse_config(const std::string& text, const std::string& path);
/// Where read_config would look; "" when there is none.
std::string find_config(const std::string& model);

}  // namespace netmend::session
