// What a linear model reaches on the same data: a network that does not do better has learned little of its own, and
// its doubts and losses are judged by that.
#pragma once

#include <optional>

#include "checks/observed.h"
#include "stats/intervals.h"

namespace netmend::checks {

/// Accuracy on tests of a ridge classifier, fitted to a sample of the training data (of the other half of the tests
/// where there is none): of the values as fed, of large images shrunk, of tokens which of them occur. Computed once;
/// nothing where labels are no classes or inputs are few.
std::optional<stats::Estimate> linear_baseline(Observed& seen);

}  // namespace netmend::checks
