// What checks leave behind: findings, values that were fine, what was not looked at, and what the views show beside
// them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "checks/check.h"
#include "checks/trial_repair.h"
#include "selection/label_issues.h"
#include "slices/rules.h"

namespace netmend::checks {

struct Results {
  std::vector<findings::Finding> findings;
  std::vector<Passed> passed;
  std::vector<Skipped> skipped;
  // What the views show beside the findings.
  std::vector<int64_t> clusters;  ///< of failures, by row of the tests; -1 for none
  std::vector<selection::LabelIssue> label_issues;
  std::vector<slices::Slice> slices;
  /// The tests of each group that a finding names, by row.
  struct GroupRows {
    std::string finding;  ///< its id
    std::vector<uint8_t> in;
  };
  std::vector<GroupRows> groups;
  TrialRepair repair;
  /// Pairs of duplicates, some of each kind: where (test, train, train-test), and the two inputs.
  struct DuplicateList {
    std::string where;
    std::vector<std::pair<findings::Shown, findings::Shown>> pairs;
  };
  std::vector<DuplicateList> duplicates;
  nlohmann::ordered_json comparison;  ///< with a reference; null without one

  void add(findings::Finding finding) { findings.push_back(std::move(finding)); }
  void pass(std::string what, std::string value) { passed.push_back({std::move(what), std::move(value)}); }
  void skip(std::string what, std::string enable) { skipped.push_back({std::move(what), std::move(enable)}); }
  bool has(std::string_view kind) const;
};

}  // namespace netmend::checks
