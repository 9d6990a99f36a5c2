// How a run of a program ended, by name: normal, crash, hang, out-of-memory, killed, no-metric; of crashes the
// exception and, where it can be told, which of the paper's five causes it is.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "sandbox/sandbox.h"

namespace netmend::programs {

inline constexpr const char* kOutcomes[] = {"normal", "crash", "hang", "out-of-memory", "killed", "no-metric"};

struct RunOutcome {
  std::string outcome;             ///< one of kOutcomes
  std::optional<double> metric;    ///< of normal runs
  double seconds = 0;              ///< of wall-clock time
  double processor = NAN;          ///< seconds of processor time of all its processes; NaN where it is not known
  int64_t peak = 0;                ///< bytes of memory
  std::string exception, message;  ///< of crashes: `ValueError`, the last line of the traceback
  std::string cause;               ///< of crashes: raise-or-assert, assignment-in-if, type-error, dimension-mismatch,
                                   ///< assignment; "" where it cannot be told
};

/// `metric`: what the run gave, wherever it comes from. `in_condition`: the bug stands in an if or while.
RunOutcome classify(const sandbox::Outcome& run, std::optional<double> metric, bool in_condition);

}  // namespace netmend::programs
