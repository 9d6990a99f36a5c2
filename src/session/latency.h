// How long a prediction takes, one input at a time: measured only when it is asked for, kept apart from what is the
// same on every machine.
#pragma once

#include <nlohmann/json.hpp>

#include "session/session.h"
#include "stats/intervals.h"

namespace netmend::session {

struct Latency {
  /// {"unit", "batch", "repeats", "device", "all": {min, q1, median, q3, max, count}, "groups": [{name, …}]}: over a
  /// few hundred tests, one at a time on one thread, each the median of several runs; by class where there are classes.
  nlohmann::ordered_json figures;
  stats::Estimate median;  ///< milliseconds
  int64_t inputs = 0;
};

Latency measure_latency(Session& session);

}  // namespace netmend::session
