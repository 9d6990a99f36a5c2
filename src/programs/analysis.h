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

/// Two operators, or two phases, against each other.
struct PairTest {
  std::string a, b;
  stats::Comparison metric, time;   ///< Welch's test
  double metric_p = 1, time_p = 1;  ///< by Holm over all pairs
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
  double seconds = 0;                                 ///< of wall-clock time
  double time = 0, time_deviation = 0;                ///< what is compared: see compares_processor_time
  bool deterministic = true;
  int64_t runs_needed =
      0;  ///< to tell a change by a hundredth of the metric with power 0.8; 0 when it is deterministic
};

/// The versions of an operator or a phase against clean runs.
struct GroupTest {
  std::string name;
  int64_t normal = 0;
  stats::Comparison metric, time;   ///< Welch's test against clean runs
  double metric_p = 1, time_p = 1;  ///< by Holm
};

struct Survivor {
  size_t bug = 0;
  double danger = 0;
  bool unchanged = false;  ///< the metric is that of the clean run with the same seed, to the last digit
  std::string check;       ///< the cheap check that would have caught it: the doctor's, where it did
};

/// What the doctor says of survivors that it does not say of the clean program.
struct DoctorScore {
  int64_t asked = 0, recorded = 0, caught = 0;
  int64_t changed = 0, changed_caught = 0;  ///< of those whose metric is not that of the clean run
  std::map<std::string, int64_t> kinds;
};

struct Analysis {
  CleanSummary clean;
  OutcomeCounts all;
  std::vector<OutcomeCounts> operators, phases;
  std::map<std::string, int64_t> causes;  ///< of crashes; "" where it could not be told
  std::vector<Against> normal;
  std::vector<GroupTest> tests, phase_tests;
  std::vector<PairTest> pairs, phase_pairs;
  stats::Anova anova_metric, anova_time;  ///< over operators
  stats::Anova phases_metric, phases_time;
  int64_t unchanged = 0;  ///< normal bugs that leave the metric as it is to the last digit
  std::vector<RestatedFinding> findings;
  std::vector<Survivor> survivors;  ///< most dangerous first
  DoctorScore doctor;
};

/// Times are compared as processor time where every clean run has one: what else the machine does changes it little.
bool compares_processor_time(const InjectResult& result);
double time_of(const RunOutcome& run, bool processor);

Analysis analyse(const InjectResult& result);

/// The check that would catch a bug of this operator.
std::string cheap_check(const std::string& op);

}  // namespace netmend::programs
