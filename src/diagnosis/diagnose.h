// A record → findings, ranked by likelihood.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/rules.h"

namespace netmend::diagnosis {

struct Fired {
  const Rule* rule;
  int64_t alarms;
};

struct Diagnosis {
  std::vector<findings::Finding> findings;
  std::vector<Fired> fired;           ///< all rules that were asked, in the order of the table
  std::vector<std::string> troubles;  ///< what is not known, in sentences
  findings::Json summary;             ///< steps, epochs, losses, what was seen
};

/// `sets`: names of rule_sets(); empty: exact and netmend. `run` is how a user names the record in a command.
Diagnosis diagnose(const records::Record& record, const Thresholds& thresholds, const std::vector<std::string>& sets,
                   const std::string& run);

/// The category of the public benchmarks of broken trainings that a kind belongs to: wrong-output-activation …
std::string category_of(const std::string& kind);

}  // namespace netmend::diagnosis
