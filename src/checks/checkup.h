// The check-up: asks all rows of the table what they want to see, makes one pass over training data and one over the
// tests, and runs every row whose needs are met.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checks/observed.h"
#include "checks/request.h"
#include "checks/results.h"
#include "findings/accepted.h"

namespace netmend::checks {

struct Checkup {
  std::optional<preflight::Preflight> preflight;  ///< none for a model alone
  std::unique_ptr<Observed> seen;
  Results results;                // of all rows; findings are what nobody has accepted, merged and ranked
  findings::SplitFindings known;  ///< what was accepted, what came back, what no longer occurs
  std::string verdict;            ///< what it comes to, in one sentence
  std::vector<std::pair<std::string, double>> times;  ///< what took how long, in order
  bool blocked = false;                               ///< nothing is said about the model
  bool interrupted = false;                           ///< by Ctrl-C: what is here is all there is
};

/// The session outlives the result. Throws InputError for names of checks that do not exist.
Checkup check_up(session::Session& session, const CheckupRequest& request);

/// From now on the check-up is one that was interrupted.
void stop(Checkup& checkup);

/// One sentence; `judged`: there were labels to judge by.
std::string verdict(const std::vector<findings::Finding>& findings, bool judged);

/// Findings that come from elsewhere (a user's own check) join the others: merged, ranked, split by what is accepted.
void join_findings(Checkup& checkup, std::vector<findings::Finding> more);

}  // namespace netmend::checks
