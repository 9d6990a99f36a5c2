// What trying shows: whether small changes of inputs change answers, whether one unit is to blame and a small repair
// helps, beside the cheap alternatives.
#pragma once

#include <optional>

#include "adequacy/assess.h"
#include "checkup/context.h"
#include "localise/blame.h"
#include "repair/mend.h"

namespace netmend::checkup {

/// Mild changes on some right answers. `seconds` at most.
void check_robustness(const Context& context, double seconds, Found& found);

/// What was searched for and tried, for the report.
struct Attempts {
  std::optional<localise::Blame> blame;
  std::optional<repair::Outcome> repair;
  std::string repaired;  ///< the unit or layer that it was about
  int64_t holdout = 0;
};
Attempts check_blame(const Context& context, double seconds, Found& found);

/// What tests leave untried, against training data where it was run. Nothing where there is no hidden layer.
std::optional<adequacy::Assessment> check_tests(const Context& context, const stream::PassOptions& pass, Found& found);

/// Failures that lie together, as the last hidden layer sees inputs: the cluster of each test, -1 for none.
std::vector<int64_t> check_clusters(const Context& context, Found& found);

}  // namespace netmend::checkup
