// The run folder of a check-up: findings.json for programs, evidence.json and the page that is drawn from it for
// people.
#pragma once

#include "base/run_folder.h"
#include "netmend/check_show.h"

namespace netmend::app {

struct ReportParts {
  const Common& common;
  const CheckView& view;
  const checkup::Preflight* preflight = nullptr;
  const checkup::Checkup* checkup = nullptr;  ///< null where nothing was said about the model
  const model::Graph* graph = nullptr;
  std::string model;
  struct Split {
    std::string name, spec;
    int64_t size = 0, used = 0;
  };
  std::vector<Split> data;
  bool pictures = true;
  double seconds = 0;
  Json compare = nullptr;  ///< against a reference
};

/// Writes evidence.json and report.html; returns the page's path.
std::string write_report(const RunFolder& folder, const ReportParts& parts);

}  // namespace netmend::app
