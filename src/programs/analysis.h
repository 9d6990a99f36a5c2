// What injected bugs did, against clean runs: outcomes by operator and phase, whether a bug shows in the metric or the
// time, which bugs nobody would notice, and whether the paper's nine findings hold here.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "programs/inject.h"
#include "stats/comparisons.h"
#include "stats/intervals.h"

namespace netmend::programs {

/// Outcomes of some bugs.
struct OutcomeCounts {
  std::string name;
  std::map<std::string, int64_t> counts;  ///< by outcome
  int64_t total = 0;
  int64_t of(const std::string& outcome) const {
    auto hit = counts.find(outcome);
    return hit == counts.end() ? 0 : hit->second;
  }
  /// With its 95 % interval.
  stats::Estimate share(const std::string& outcome) const { return stats::rate(of(outcome), total); }
};

/// A normal bug against the clean runs.
struct Against {
  size_t bug = 0;  ///< in InjectResult::bugs
  stats::Comparison metric, time;
  double metric_p = 1, time_p = 1;  ///< by Holm over all bugs
  bool noticed() const { return metric_p < 0.05 || time_p < 0.05; }
};

/// One of the paper's findings, here.
struct RestatedFinding {
  int number = 0;
  std::string claim;    ///< as a sentence
  std::string verdict;  ///< holds here, does not hold here, not enough data
  std::string test;     ///< the figures behind it
};

struct CleanSummary {
  int64_t runs = 0;
  double mean = 0, deviation = 0, low = 0, high = 0;  ///< of the metric
  double seconds = 0, seconds_deviation = 0;
  bool deterministic = true;
  int64_t runs_needed =
      0;  ///< to tell a change by a hundredth of the metric with power 0.8; 0 when it is deterministic
};

struct OperatorTest {
  std::string op;
  int64_t normal = 0;
  stats::Comparison metric, time;   ///< Welch's test against clean runs
  double metric_p = 1, time_p = 1;  ///< by Holm
};

struct Survivor {
  size_t bug = 0;
  double danger = 0;
  std::string check;  ///< the cheap check that would have caught it
};

struct Analysis {
  CleanSummary clean;
  OutcomeCounts all;
  std::vector<OutcomeCounts> operators, phases;
  std::map<std::string, int64_t> causes;  ///< of crashes; "" where it could not be told
  std::vector<Against> normal;
  std::vector<OperatorTest> tests;
  stats::Anova anova_metric, anova_time;  ///< over operators
  std::vector<RestatedFinding> findings;
  std::vector<Survivor> survivors;  ///< most dangerous first
};

Analysis analyse(const InjectResult& result);

/// The check that would catch a bug of this operator.
std::string cheap_check(const std::string& op);

}  // namespace netmend::programs
