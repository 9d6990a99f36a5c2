// What the parts of the data checks share: both parts with their census and answers, and what a group of inputs costs.
// Used by data_*.cc and slice_checks.cc alone.
#pragma once

#include <functional>

#include "census/census.h"
#include "checkup/context.h"
#include "slices/columns.h"

namespace netmend::checkup {

/// A part of the data as the checks see it.
struct Side {
  const Part* part = nullptr;
  const census::CensusState* census = nullptr;
  std::vector<double> failing;  ///< one an input; empty where the network was not run
  std::string spec() const { return part->data->info().spec; }
  int64_t inputs() const { return census->inputs(); }
  bool sampled() const { return part->whole > part->data->size(); }
  double mean_failing() const;  ///< NaN where it was not run
  std::vector<int64_t> class_counts(size_t classes) const;
};

struct DataLook {
  DataLook(const Context& context, const census::CensusState& test, const census::CensusState* train, Found& found);

  const Context& context;
  Found& found;
  Side test;
  std::optional<Side> train;
  std::vector<std::string> classes;  ///< names; empty where labels are no classes
  std::vector<const Side*> sides() const;

  /// Words for a finding about one part: case, test, train, spec, split.
  findings::Words words(const Side& side) const;
  /// What it costs that these inputs of a part are answered worse than the others: nothing unless chance cannot
  /// explain it.
  findings::Effect cost(const Side& side, const std::function<bool(size_t input)>& among) const;
  /// `1,204 of 10,000 test inputs (12.0 %)`
  std::string share_text(const Side& side, int64_t count) const;
  void pass(const std::string& what, const std::string& value) { found.passed.push_back({what, value}); }
};

/// The first few of a list of inputs, as evidence.
std::vector<findings::Shown> some(const Side& side, const std::vector<int64_t>& inputs, size_t most = 12);
/// `1.2 points`, `0.3 points`; `nothing that could be measured`
std::string points_text(double share);

void check_classes(DataLook& look);  ///< imbalance, absent-class, class-shift, sorted-data, few-tests
void check_copies(DataLook& look);   ///< duplicates, conflicting-labels, split-leak
void check_values(
    DataLook& look);  ///< constant-features, missing-values, unknown-tokens, truncated-text, outlier-inputs
void check_drift(DataLook& look);  ///< range-shift, drift, label-leak

}  // namespace netmend::checkup
