// Results for people and for programs.
#pragma once

#include "checkup/preflight.h"
#include "netmend/shared.h"
#include "observers/groups.h"

namespace netmend::app {

/// The evaluation; `eval` and `lab merge` print the same.
void print_result(const observers::PredictionSettings& settings, const observers::PredictionResult& result,
                  double seconds);
void print_groups(const observers::PredictionSettings& settings, const std::vector<observers::GroupResult>& groups);
Json result_json(const observers::PredictionSettings& settings, const observers::PredictionResult& result,
                 double seconds);
Json groups_json(const observers::PredictionSettings& settings, const std::vector<observers::GroupResult>& groups);

/// `91.3 % (90.7–91.8)`, `0.42 (0.40–0.44)`
std::string figure_text(const std::string& metric, const stats::Estimate& estimate);
Json estimate_json(const stats::Estimate& estimate);

/// `1 unit`, `1,204 units`
std::string counted(int64_t count, const std::string& what);

/// What the preflight looked at, in a line; the blocker with the set-ups that were tried, when there is one.
void print_preflight(const checkup::Preflight& preflight, const std::string& metric);
Json preflight_json(const checkup::Preflight& preflight);
/// The blocker as a finding: id, level, sureness, title, evidence, next.
Json blocker_json(const checkup::Blocker& blocker, const std::string& command);

}  // namespace netmend::app
