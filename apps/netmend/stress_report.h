// What `netmend stress` found, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "inputs/fuzz.h"
#include "inputs/method.h"
#include "inputs/summary.h"
#include "netmend/shared.h"

namespace netmend::app {

struct MethodReport {
  const inputs::Method* method = nullptr;
  std::string name;
  inputs::Settings settings;
  inputs::CampaignResult result;
  inputs::Summary summary;
  std::optional<inputs::FuzzResult> fuzz;  ///< without what it made, which is in `result`
  std::string skipped;                     ///< why; "" when it was done
};

/// How much of a criterion the originals cover, with what each method made, and with all of it.
struct CoverageGain {
  observers::Figure before, after;
  std::vector<observers::Figure> by_method;
};

struct StressReport {
  std::vector<MethodReport> methods;
  inputs::Summary all;        ///< of all methods together
  int64_t right = 0, of = 0;  ///< inputs that are answered right, and all that were looked at
  int64_t changed_by_saving = 0;
  std::vector<CoverageGain> coverage;  ///< one a criterion
  std::string range, unit;             ///< valid range of raw values, and what distances are measured in
  std::string file, spec, sheet, run, next;
  double seconds = 0;
  bool interrupted = false;
};

Json stress_json(const StressReport& report, const observers::PredictionSettings& settings);
void print_stress(const StressReport& report, const Judged& judged);
/// One row an input and method.
void write_changes(const std::string& path, const StressReport& report, const Judged& judged);

}  // namespace netmend::app
