// Results as people read them on a terminal.
#pragma once

#include "netmend/shared.h"
#include "observers/groups.h"
#include "observers/result.h"

namespace netmend::app {

/// The evaluation; `eval` and `lab merge` print the same.
void print_result(const observers::PredictionSettings& settings, const observers::PredictionResult& result,
                  double seconds);
void print_groups(const observers::PredictionSettings& settings, const std::vector<observers::GroupResult>& groups);
Json groups_json(const observers::PredictionSettings& settings, const std::vector<observers::GroupResult>& groups);

/// What a command does about a blocker.
enum class OnBlocker { kStop, kDataOnly, kGoOn, kAsk };
/// What the preflight looked at, in a line; the blocker with the set-ups that were tried, when there is one, and what
/// follows from it.
void print_preflight(const preflight::Preflight& preflight, const std::string& metric, OnBlocker then);

}  // namespace netmend::app
