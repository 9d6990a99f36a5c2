// What the tests of a session reach and leave untried, with the user's own names, as JSON and as tables.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "adequacy/assess.h"
#include "adequacy/coverage_run.h"
#include "base/escape.h"

namespace netmend::adequacy {

struct CoverageFindings {
  Assessment found;
  observers::SpacePtr space;
  const observers::Profile* profile = nullptr;           ///< none without training data
  std::shared_ptr<const dataset::Dataset> tests, train;  ///< `train` may be none: a profile keeps no inputs
  std::string layer;                                     ///< that surprise and important units are of
  bool learned = false;                                  ///< in this run, not read from a file
  double learning_seconds = 0;
  std::string subset_file, run;
  Shell next;

  static constexpr size_t kShown = 10;  ///< of lists in the JSON document
  /// The user's own names.
  std::string test_id(int64_t sample) const;
  std::string train_id(int64_t sample) const;
  std::string important_unit(int64_t unit) const;  ///< of the last layer
};

nlohmann::ordered_json coverage_json(const CoverageRequest& request, const CoverageFindings& findings);
/// units.csv, surprise.csv, subset.txt and core.txt.
void write_coverage_tables(const std::string& folder, const CoverageFindings& findings);
/// The numbers of the tests worth keeping, one per line, in their order.
void write_subset(const std::string& path, const CoverageFindings& findings, const std::optional<Subset>& subset);

}  // namespace netmend::adequacy
