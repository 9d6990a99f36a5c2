// Findings that someone has accepted, with a reason: they are counted apart until they end, or until the finding is
// clearly worse than on the day it was accepted. Plain functions of values; netmend.toml is where they are kept.
#pragma once

#include <string>
#include <vector>

#include "findings/finding.h"

namespace netmend::findings {

struct Acceptance {
  std::string id;  ///< `kind:where`
  std::string reason;
  std::string until;    ///< the last day it holds, 2027-01-31; empty for no end
  double value = 0;     ///< Finding::value of the day; infinite: however bad it gets
  double factor = 1.5;  ///< the finding returns when its value is beyond so many times that
};

/// An acceptance that does not hold any more although its finding is there.
struct Returned {
  Acceptance acceptance;
  std::string why;  ///< `accepted until 2026-10-01`, `0.031 against 0.012 when it was accepted`
};

struct SplitFindings {
  std::vector<Finding> open;       ///< in their order, those that returned among them
  std::vector<Finding> accepted;   ///< in their order
  std::vector<Returned> returned;  ///< in the order of `open`
  std::vector<Acceptance> stale;   ///< whose finding no longer occurs
};
/// `today` as 2026-11-15. Of two acceptances of one finding the later one counts. A finding that was merged into
/// another one still occurs, but does not hide what it was merged into.
SplitFindings split_accepted(std::vector<Finding> findings, const std::vector<Acceptance>& acceptances,
                             const std::string& today);

/// Worse than accepted by the factor and by what anybody would notice, 0.2 points.
bool clearly_worse(double value, const Acceptance& acceptance);

/// A day that the calendar has, as 2026-11-15: such days sort as text.
bool is_day(const std::string& text);
std::string today();

}  // namespace netmend::findings
