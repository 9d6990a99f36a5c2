// A whole check-up: everything that fits a model and its data, the run folder with its report, and what a terminal
// shows of it. No tensors: commands, bindings and other people's programs call it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "checks/check.h"
#include "checks/request.h"
#include "findings/accepted.h"
#include "session/session.h"

namespace netmend::evidence {

struct CheckRunOptions {
  bool pictures = true;               ///< inputs as pictures and texts in the report, else only their names
  bool latency = false;               ///< measure how long predictions take
  std::vector<std::string> programs;  ///< checks of the user's own
};

struct CheckRun {
  std::string verdict;                      ///< one sentence
  std::string numbers;                      ///< metric, worst class, failures; may be empty
  std::string coverage;                     ///< what the tests reach; may be empty
  std::vector<findings::Finding> findings;  ///< ranked; what nobody has accepted
  findings::SplitFindings known;            ///< what was accepted, what came back, what no longer occurs
  std::vector<checks::Passed> passed;
  std::vector<checks::Skipped> skipped;
  nlohmann::ordered_json document;                    ///< findings.json
  std::vector<std::pair<std::string, double>> times;  ///< what took how long
  std::string report;                                 ///< the page
  bool blocked = false, interrupted = false;
  /// 1 when a finding is at `fail_on` (blocker, serious, minor, note, never) or above, 130 after Ctrl-C, else 0.
  int exit_status(const std::string& fail_on) const;
};

/// Writes findings.json, evidence.json and report.html into the session's run folder; the caller ends the run with
/// Session::finish.
CheckRun run_check(session::Session& session, const checks::CheckupRequest& request, const CheckRunOptions& options);

}  // namespace netmend::evidence
