// What the checks of data share: both splits with their census and predictions, and what a group of inputs costs.
#pragma once

#include <functional>

#include "census/census.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "slices/columns.h"

namespace netmend::checks {

/// A split as the checks of data see it.
struct Side {
  const ObservedSplit* part = nullptr;
  const census::CensusState* census = nullptr;
  std::vector<double> failing;  ///< one per input; empty where the network was not run
  std::string spec() const { return part->data->info().spec; }
  /// `test` or `training`, before `data` or `inputs`.
  std::string words() const { return part->name == "train" ? "training" : part->name; }
  int64_t inputs() const { return census->inputs(); }
  bool sampled() const { return part->whole > part->data->size(); }
  double mean_failing() const;  ///< NaN where it was not run
  std::vector<int64_t> class_counts(size_t classes) const;
};

struct DataLook {
  DataLook(const Observed& seen, Results& found);

  const Observed& seen;
  Results& found;
  Side test;
  std::optional<Side> train;
  std::vector<std::string> classes;  ///< names; empty where labels are no classes
  std::vector<const Side*> sides() const;

  /// Words for a finding about one split: case, test, train, spec, split.
  findings::Words words(const Side& side) const;
  /// What it costs that predictions for these inputs are worse than for the others: nothing unless chance cannot
  /// explain it.
  findings::Effect cost(const Side& side, const std::function<bool(size_t input)>& among) const;
  /// `this costs 1.2 points`; where predictions were not judged, that this is unknown.
  std::string cost_text(const Side& side, const findings::Effect& effect) const;
  /// Whether predictions are numbers whose errors are measured, not counted.
  bool of_numbers() const;
  /// `1.2 points`; of predicted numbers `0.3 standard deviations of the labels`, the unit of their errors.
  std::string amount_text(double share) const;
  /// `1,204 of 10,000 test inputs (12 %)`
  std::string share_text(const Side& side, int64_t count) const;
  void pass(const std::string& what, const std::string& value) { found.passed.push_back({what, value}); }
};

/// The first few of a list of inputs, as evidence.
std::vector<findings::Shown> some(const Side& side, const std::vector<int64_t>& inputs, size_t most = 12);
/// `1.2 points`, `0.3 points`; `nothing measurable`
std::string points_text(double share);

}  // namespace netmend::checks
