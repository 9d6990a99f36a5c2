// The check-up on the terminal and as JSON.
#pragma once

#include "checkup/checkup.h"
#include "findings/accepted.h"
#include "netmend/shared.h"

namespace netmend::app {

/// What a check-up comes to, ready to be shown.
struct CheckView {
  std::string verdict;
  std::vector<findings::Finding> findings;  ///< ranked
  findings::SplitFindings known;            ///< what was accepted, what came back, what no longer occurs
  std::vector<checkup::Passed> passed;
  std::vector<checkup::Skipped> skipped;
  std::string report;  ///< the page, or ""
  std::string words;   ///< model and data as typed
};

/// The four numbers under the verdict.
std::string numbers_line(const observers::PredictionSettings& settings, const observers::PredictionResult& result);
void print_view(const CheckView& view, const std::string& numbers, const std::string& tests);
Json findings_json(const std::vector<findings::Finding>& findings);
Json skipped_json(const std::vector<checkup::Skipped>& skipped);

}  // namespace netmend::app
