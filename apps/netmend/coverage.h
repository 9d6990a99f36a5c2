// What `netmend coverage` found, for people and for programs.
#pragma once

#include "adequacy/assess.h"
#include "netmend/shared.h"

namespace netmend::app {

struct CoverageFindings {
  adequacy::Assessment found;
  observers::SpacePtr space;
  const observers::Profile* profile = nullptr;           ///< none without training data
  std::shared_ptr<const dataset::Dataset> tests, train;  ///< `train` may be none: a profile keeps no inputs
  std::string layer;                                     ///< that surprise and important units are of
  bool learned = false;                                  ///< in this run, not read from a file
  double learning_seconds = 0;
  std::string subset_file, run, next;

  static constexpr size_t kShown = 10;  ///< of lists in the JSON document
  /// The user's own names.
  std::string test_id(int64_t sample) const;
  std::string train_id(int64_t sample) const;
  std::string important_unit(int64_t unit) const;  ///< of the last layer
};

/// Rows of the highest finite scores.
std::vector<size_t> most_surprising(const std::vector<double>& scores);

Json coverage_json(const CoverageOptions& options, const CoverageFindings& findings);
void print_coverage(const CoverageOptions& options, const CoverageFindings& findings);
/// units.csv, surprise.csv, subset.txt and core.txt.
void write_coverage_tables(const std::string& folder, const CoverageFindings& findings);
/// The numbers of the tests worth keeping, one a line, in their order.
void write_subset(const std::string& path, const CoverageFindings& findings,
                  const std::optional<adequacy::Subset>& subset);

}  // namespace netmend::app
