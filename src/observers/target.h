// Which wrong predictions we are after: all of them, those of one class, one confusion, one slice, or a list of inputs.
#pragma once

#include <cstdint>
#include <functional>

#include "observers/result.h"

namespace netmend::observers {

/// What an input is evidence for.
enum class Side { kFailing, kPassing, kNeither };

struct Target {
  int64_t label = -1;      ///< only inputs of this class; -1 for all
  int64_t predicted = -1;  ///< only failures that are predicted as this class; other failures are on neither side
  /// Inputs whose failure counts, and inputs that may stand for what is right; empty for all. Any thread may call.
  std::function<bool(int64_t sample)> may_fail = {}, may_pass = {};

  /// Inputs that are neither right nor wrong are on neither side.
  Side side(const SampleRow& row) const;
};

}  // namespace netmend::observers
