// The repair of a session's model: failures and splits, the search, the verdict on the hold-out set, and what is
// written. No tensors: commands and other programs call it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "repair/names.h"
#include "repair/sbfl_choice.h"
#include "stats/intervals.h"

namespace netmend::session {
class Session;
}

namespace netmend::repair {

struct RepairRequest {
  std::string method = "auto";     ///< one of method_names()
  std::string on;                  ///< which failures; "" for all
  std::vector<std::string> units;  ///< whose weights may change; empty: they are searched for
  SbflChoice sbfl;
};
/// What can be said without a model. Throws InputError.
void check_request(const RepairRequest& request);

/// What the repair works on.
struct RepairSplits {
  std::string data;      ///< spec of the test split
  std::string target;    ///< the failures in words; "" for all
  bool outcomes = true;  ///< predictions are right or wrong
  int64_t failing = 0, passing = 0;
  int64_t search = 0, selection = 0, holdout = 0;
  int64_t unused = 0;  ///< in no split: rests of groups that cannot be shared out, and what exceeds the splits' limits
};

/// How a network does on the hold-out set.
struct HoldoutFigures {
  int64_t inputs = 0;
  double accuracy = 0, loss = 0;
  std::string metric;  ///< "" when there is none
  stats::Estimate value;
};

struct MethodResult {
  std::string method, why_not;  ///< `why_not`: when nothing was found
  std::string words;            ///< what was done
  std::vector<std::string> units;
  int64_t edits = 0, weights = 0;  ///< `weights`: values that change
  double selection_metric = 0;
  HoldoutFigures after;
  int64_t fixes = 0, regressions = 0;
  double seconds = 0;
};

struct ClassFlips {
  std::string name;
  int64_t inputs = 0, right_before = 0, right_after = 0, fixes = 0, regressions = 0;
};

struct RepairResult {
  std::string verdict, reason;  ///< repaired, no real change, refuse
  bool repaired = false;
  int chosen = -1;  ///< in `methods`; -1: nothing is better than the model as it is
  std::vector<MethodResult> methods;
  HoldoutFigures before, after;
  int64_t fixes = 0, regressions = 0;
  double p = 1;            ///< McNemar's exact test
  stats::Estimate change;  ///< of the accuracy, or of the error
  std::string cheap;       ///< a cheap method that does as well as the chosen one; "" for none
  std::string smaller;     ///< why a smaller change than the best-scoring one was taken; "" where it was not
  std::string larger;      ///< why a smaller change that comes close was not taken; "" where there is none
  std::vector<ClassFlips> per_class;
  double work = 0;  ///< multiply-adds that the searches took
  bool interrupted = false;
};

/// What the edits do to one unit, or to a parameter that belongs to none.
struct PlannedChange {
  std::string where;
  int64_t values = 0;
  double largest = 0;
};

class RepairRun {
 public:
  /// Predicts the test split once and shares it out. Throws InputError: no labels, nothing fails, too few inputs.
  RepairRun(session::Session& session, RepairRequest request);
  ~RepairRun();

  const RepairSplits& splits() const;
  /// Once, within what is left of the session's budget.
  const RepairResult& search(const std::function<void(const std::string&)>& progress);

  std::vector<PlannedChange> plan() const;
  /// The edits of the chosen method, as edits.json.
  void write_plan(const std::string& path) const;
  /// The repaired model; it carries a record of the inputs that the search saw.
  void write_model(const std::string& path) const;
  /// Inputs whose prediction became right or wrong, as CSV.
  void write_flips(const std::string& path) const;
  /// What the model as it was predicts on the hold-out set, as a folder that `netmend compare FOLDER --common` reads.
  void write_holdout(const std::string& folder) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
nlohmann::ordered_json to_json(const RepairSplits& splits, const RepairResult& result);

/// What the edits of a file would do.
struct WhatIfResult {
  std::string model, data, metric;
  int64_t edits = 0, inputs = 0;
  HoldoutFigures before, after;
  int64_t fixes = 0, regressions = 0;
  double p = 1;
  struct Alone {
    std::string unit;
    double accuracy = 0, loss = 0;
    int64_t more_correct = 0;
  };
  double loss = 0;           ///< without edits
  std::vector<Alone> alone;  ///< each unit's edits by themselves; empty where they build on each other
};
/// Throws InputError: no labels, or edits that do not fit the model.
WhatIfResult what_if(session::Session& session, const std::string& edit_file);
nlohmann::ordered_json to_json(const WhatIfResult& result);

}  // namespace netmend::repair
