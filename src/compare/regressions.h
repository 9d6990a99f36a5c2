// What changed from a reference to the session's model on the same inputs: regressions (right predictions that became
// wrong) and fixes, overall, per class and per group. No tensors: commands and other people's programs call it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observers/flips.h"
#include "observers/result.h"
#include "session/session.h"

namespace netmend::compare {

struct CompareRequest {
  std::string reference;  ///< a model, a run folder of eval, or baseline.json
  bool by_id = false;     ///< only inputs that both name; else the data must be the same
  double margin = -1;     ///< share that the newer model may be worse; below 0: gate.overall_drop, else half a point
  std::string baseline;   ///< where the newer predictions are kept, or ""
};

/// Counts of a class or a group.
struct NamedFlips {
  std::string column, name;  ///< `column` of a group; a missing value has no name
  observers::FlipCount count;
};

struct Regressions {
  std::string data;  ///< the spec
  observers::FlipCount whole;
  std::vector<NamedFlips> classes, groups;
  std::vector<observers::Metric> before, after;  ///< the one that counts first; `before` only of a model
  std::optional<stats::Estimate> figure_before;  ///< of the metric that counts; nothing when it was not kept
  stats::Estimate error_change{};                ///< of numbers: mean of (error after − error before)
  double margin = 0;
  observers::Verdict verdict = observers::Verdict::kUnclear;
  bool has_right_and_wrong =
      true;                 ///< false for numbers without a tolerance: a fix came closer, a regression moved away
  int64_t missing = 0;      ///< inputs that the reference does not know
  std::string overlap;      ///< a sentence where a repair's search saw some of the others; else ""
  std::string fingerprint;  ///< of the data
  double seconds = 0;
  bool interrupted = false;
};

/// Throws InputError without labels, and where the two cannot be compared. Writes flips.csv into the run folder.
Regressions find_regressions(session::Session& session, const CompareRequest& request);

/// The share that a newer model may be worse, as the request, else the gate of netmend.toml says.
double margin_of(double asked, const session::Config& config);

}  // namespace netmend::compare
