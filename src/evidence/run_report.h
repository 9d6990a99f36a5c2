// The run folder of a check-up: findings.json for programs, evidence.json and the page that is drawn from it for
// people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "checks/checkup.h"

namespace netmend::evidence {

struct ReportOptions {
  bool pictures = true;                      ///< inputs as pictures and texts, else only their names
  nlohmann::ordered_json latency = nullptr;  ///< as session/latency.h measures it
};

/// What programs read: verdict, metric, findings, accepted, passed, skipped, preflight, result. Nothing in it depends
/// on time, place or the number of workers.
nlohmann::ordered_json findings_document(const checks::Checkup& checkup);

/// Writes findings.json, evidence.json and report.html into the session's run folder; returns the page's path. After
/// Ctrl-C the check-up is an interrupted one, and what takes reading the data again is left out.
std::string write_report(session::Session& session, checks::Checkup& checkup, const ReportOptions& options);

}  // namespace netmend::evidence
