// A record → findings, ranked by likelihood.
#pragma once

#include <string>
#include <utility>
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

  std::vector<std::pair<std::string, double>> features;  ///< of features_of()
  /// What the forest says, most likely first; empty where there is none, or nothing to judge. It decides nothing.
  std::vector<std::pair<std::string, double>> second_opinion;

  /// A confirmed finding above a note: whatever the forest says, this is what happened.
  bool is_confirmed() const;
  bool reaches(findings::Level level) const;  ///< a finding is at this level or above
};

/// `sets`: names of rule_sets(); empty: exact and netmend. `run` is how a user names the record in a command.
Diagnosis diagnose(const records::Record& record, const Thresholds& thresholds, const std::vector<std::string>& sets,
                   const std::string& run);

/// As findings.json and --json have it.
findings::Json diagnosis_json(const Diagnosis& diagnosis, const std::string& run);
/// Findings above a note whose kind the other one has not above a note: their ids.
std::vector<std::string> only_in(const Diagnosis& a, const Diagnosis& b);

/// Two trainings; `differs` as first_difference() has it.
findings::Json comparison_json(const std::string& before_run, const Diagnosis& before, const std::string& after_run,
                               const Diagnosis& after, int64_t differs);
/// A row for each figure of the summaries: its name, before, after.
std::vector<std::vector<std::string>> comparison_rows(const Diagnosis& before, const Diagnosis& after);
/// Rule, symptom, kind, thresholds.
std::vector<std::vector<std::string>> rule_rows(const Thresholds& thresholds);
findings::Json rules_json(const Thresholds& thresholds);

/// The category of the public benchmarks of broken trainings that a kind belongs to: wrong-output-activation …
std::string category_of(const std::string& kind);

}  // namespace netmend::diagnosis
