// All criteria asked for, in one pass over the tests, and what the tests leave untried.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adequacy/choice.h"
#include "adequacy/reduce.h"
#include "adequacy/untried.h"
#include "observers/coverage/profile.h"
#include "stream/pass.h"

namespace netmend::adequacy {

struct AssessOptions {
  std::vector<Wanted> criteria;
  std::vector<int64_t> important{6, 8, 10, 12};  ///< m of IDC
  observers::Published published = observers::Published::kCorrected;
  bool zero_cluster = false;  ///< of IDC: 0 is a cluster of its own
  observers::Criteria::Filter counts = {};
  stream::PassOptions pass;
  double most_bytes = 2e9;                             ///< for traces of tests and for tallies
  std::function<void(double bytes)> before_pass = {};  ///< told what will be taken at most, before it is
  std::string no_training;                             ///< why there is no profile, when there is none
  std::string no_importance;                           ///< why it has no importance, when it has none
};

/// Scores of surprise, one a test; not finite where there is none.
struct Surprise {
  std::string name;  ///< LSA, DSA, MDSA
  std::vector<double> scores;
};

struct Skipped {
  std::string what, why;
};

/// Tests that reach together what all do.
struct Subset {
  std::vector<std::string> criteria;  ///< that it keeps the value of
  std::vector<Kept> kept;             ///< rows of the tests
};

struct Assessment {
  int64_t inputs = 0;  ///< that count
  std::vector<observers::Figure> figures;
  std::vector<Skipped> skipped;
  std::vector<std::string> notes;
  std::vector<observers::SampleRow> rows;  ///< one a test
  std::vector<Surprise> surprise;
  std::optional<Subset> subset;  ///< for all criteria that can be told input by input
  std::optional<Subset> core;    ///< the same without the finest ones, to which nearly every input adds something
  std::vector<Region> regions;   ///< of the most important units
  struct Important {
    observers::Figure figure;
    Combinations combinations;
    std::vector<observers::QuantisedUnit> units;
  };
  std::vector<Important> important;  ///< one an m
  bool highs_judged = false;
  std::vector<observers::LowUnit> low_units;
  /// Units that a criterion with one goal a unit leaves uncovered, by criterion.
  std::map<std::string, std::vector<int64_t>> uncovered;
  double bytes = 0;  ///< of traces and tallies, at most
  double seconds = 0, scoring_seconds = 0;
  bool interrupted = false;
};

/// Criteria that ride on a pass over the tests: watch observer() in it, then finish() with the state it left.
class Assessor {
 public:
  /// `profile` may be absent: criteria that need it are skipped. What is learned about it on the way (extremes of
  /// surprise) is noted in its facts. All arguments outlive the assessor.
  Assessor(const stream::Subject& tests, const observers::PredictionSettings& settings, observers::SpacePtr space,
           observers::Profile* profile, const AssessOptions& options);
  ~Assessor();
  const observers::Criteria& observer() const;
  /// Takes the state over. `seconds` and `interrupted` are those of the pass.
  Assessment finish(observers::CriteriaState& state, double seconds, bool interrupted);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The same with a pass of its own.
Assessment assess(const stream::Subject& tests, const observers::PredictionSettings& settings,
                  observers::SpacePtr space, observers::Profile* profile, const AssessOptions& options);

}  // namespace netmend::adequacy
