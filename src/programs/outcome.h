// How a run of a program ended, by name: normal, crash, hang, out-of-memory, killed, no-metric; of crashes the
// exception and, where it can be told, which of the paper's five causes it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sandbox/sandbox.h"

namespace netmend::programs {

inline constexpr const char* kOutcomes[] = {"normal", "crash", "hang", "out-of-memory", "killed", "no-metric"};

struct RunOutcome {
  std::string outcome;           ///< one of kOutcomes
  std::optional<double> metric;  ///< of normal runs
  double seconds = 0;
  int64_t peak = 0;                ///< bytes of memory
  std::string exception, message;  ///< of crashes: `ValueError`, the last line of the traceback
  std::string cause;               ///< of crashes: raise-or-assert, assignment-in-if, type-error, dimension-mismatch,
                                   ///< assignment; "" where it cannot be told
};

/// The last line of the output that the expression fits gives the metric, by its first group or else its whole match.
/// Nothing where no line fits or what fits is no number.
std::optional<double> find_metric(const std::string& output, const std::string& expression);
/// Throws InputError when it is no regular expression.
void require_expression(const std::string& expression);

/// `in_condition`: the bug stands in an if or while.
RunOutcome classify(const sandbox::Outcome& run, const std::string& metric, bool in_condition);

}  // namespace netmend::programs
