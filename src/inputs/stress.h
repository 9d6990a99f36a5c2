// New inputs from old ones by noise, transformations, attacks and fuzzing: how often the prediction changes, by how
// large a perturbation, and what the new inputs cover. No tensors: commands and other people's programs call it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/escape.h"
#include "inputs/summary.h"
#include "session/session.h"

namespace netmend::inputs {

struct StressRequest {
  std::string method;                      ///< names with commas, or all; fuzz among them
  std::string product;                     ///< the NPZ file that the new inputs are written to
  std::string eps, step_size;              ///< as typed: 0.1, 8/255; "" for the method's own
  std::string range;                       ///< LOW:HIGH of raw values; "": found in the data
  std::string on;                          ///< a target as every command takes it; "" for all inputs
  std::string from = "right";              ///< right: inputs whose predictions are right; all
  std::string as_published;                ///< deepfault, deephunter, art, or ""
  std::string criteria, profile;           ///< coverage criteria of new inputs; they guide fuzz
  std::string queue;                       ///< of fuzz; "": beside the product
  std::vector<std::string> units, layers;  ///< of deepfault; that criteria look at
  int64_t steps = 0, tries = 1;            ///< 0: the method's own
  double confidence = 0;                   ///< of cw
  bool round = false;                      ///< raw values stay bytes
};
/// Slips of the finger, before anything is opened. Throws InputError.
void check_request(const StressRequest& request);

struct FuzzCounts {
  int64_t rounds = 0, resumed = 0;  ///< in all, and those found on disk
  int64_t tried = 0, failing = 0, kept = 0;
  int64_t goals_of_seeds = 0, goals = 0;  ///< covered
};

struct MethodResult {
  std::string name;
  std::string skipped;  ///< why; "" when it was done
  Summary summary;
  double eps = 0;     ///< 0 where it does not apply
  int64_t steps = 0;  ///< 0 where it does not apply
  bool cut = false;   ///< the budget ended it
  double seconds = 0;
  std::optional<FuzzCounts> fuzz;
};

/// Of a criterion: what is covered.
struct Covered {
  double value = 0;  ///< a share, where there is a total
  double covered = 0, total = -1;
};
/// How much the originals cover, with what each method made, and with all of it.
struct CoverageGain {
  std::string criterion;
  Covered before, after;
  std::vector<Covered> by_method;  ///< of methods that made something, in their order
};

struct StressReport {
  std::string data;  ///< the spec
  std::vector<MethodResult> methods;
  Summary all;                    ///< of all methods together
  int64_t right = 0, of = 0;      ///< inputs whose predictions are right, and all that were looked at
  int64_t changed_by_saving = 0;  ///< predictions that differ between inputs as made and as read back from the file
  std::vector<CoverageGain> coverage;
  std::string range, unit;      ///< valid range of raw values; what distances are measured in
  std::string file, made_data;  ///< the product and the spec that opens it; "" when nothing was made
  std::string sheet;            ///< a picture of some of them, or ""
  Shell next;                   ///< a command
  double seconds = 0;
  bool interrupted = false;
};
/// Chooses inputs, makes new ones, writes them and judges what is read back. Writes the product, and changes.csv and
/// changed.png into the run folder. How many inputs are tried follows from the session's budget. Throws InputError for
/// what does not fit model and data.
StressReport stress(session::Session& session, const StressRequest& request);

/// The name of a predicted class, `NaN` for none.
std::string class_words(const observers::PredictionSettings& task, int64_t number);
/// Every position once, and the first ones of any number spread over all.
std::vector<size_t> spread_order(size_t count);

}  // namespace netmend::inputs
