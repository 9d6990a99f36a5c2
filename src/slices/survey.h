// Where a model is weak: groups compared with everybody else, and weak slices as rules of at most two terms. No
// tensors: commands and other people's programs call it.
#pragma once

#include <string>
#include <vector>

#include "observers/result.h"
#include "session/session.h"
#include "slices/columns.h"
#include "slices/groups.h"
#include "slices/rules.h"

namespace netmend::slices {

struct SurveyRequest {
  std::string groups;  ///< columns that are compared, with commas; "" for all that are kept aside
  int64_t most = 8;    ///< rules that are looked for
  int64_t least = 50;  ///< inputs that a group or slice must have
};

struct Survey {
  std::string data;  ///< the spec
  std::vector<observers::SampleRow> rows;
  observers::PredictionResult result;
  std::vector<Column> columns;
  std::vector<double> failing;  ///< one per row: see failing_of()
  std::vector<Group> groups;
  Weakness weak;
  double unit = 1;      ///< turns failing of numbers back into errors
  bool errors = false;  ///< figures are errors of numbers; else shares of right predictions
  int64_t of = 0;       ///< inputs that there are; result.samples were used
  double seconds = 0;
  bool interrupted = false;

  /// A mean of failing as people read it: accuracy, or the mean absolute error.
  stats::Estimate figure(const stats::Estimate& failing_mean) const;
  std::string metric() const { return errors ? "mae" : "accuracy"; }
};
/// One pass over the tests, or over the sample of them that the budget allows. Throws InputError without labels, and
/// for columns that the data does not have.
Survey survey(session::Session& session, const SurveyRequest& request);

/// slices.csv and groups.csv.
void write_tables(const RunFolder& folder, const Survey& survey);

/// Only these columns are compared as groups, wherever they come from; "" changes nothing. Throws InputError.
void choose_groups(const std::string& wanted, std::vector<Column>& columns);

}  // namespace netmend::slices
