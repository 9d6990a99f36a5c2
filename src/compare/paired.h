// Two sets of predictions for the same inputs: a model's and those of a reference, which is another model, a run folder
// of eval, or baseline.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/baseline.h"
#include "observers/flips.h"
#include "observers/part_predictions.h"
#include "session/session.h"
#include "session/split.h"

namespace netmend::compare {

/// An input whose prediction changed sides.
struct Flip {
  int64_t sample;
  observers::Change change;
  double label, before, after;  ///< `before` is NaN when only right or wrong was kept
  float confidence;
  float confidence_before;  ///< NaN when it was not kept
};

struct Comparison {
  observers::Flips flips;
  std::vector<Flip> list;
  observers::PredictionResult before, after;        ///< `before` only of a model
  std::vector<observers::PredictionResult> groups;  ///< of the newer model, one per observer that was asked for
  std::vector<observers::SampleRow> rows;           ///< of the newer model, when run_both() made it
  Baseline newer;                                   ///< the newer predictions, to be kept
  int64_t missing = 0;                              ///< inputs that the reference does not know
  std::vector<int64_t> compared;                    ///< the others, where some are missing; else empty
  double seconds = 0;
  bool interrupted = false;
};

/// One of the two.
struct Reference {
  std::string name;
  std::optional<session::Split> split;  ///< of a model: it runs on the session's tests
  observers::PredictionSettings settings;
  std::optional<Baseline> baseline;
};
/// Throws InputError when its predictions cannot be compared with the session's model.
Reference open_reference(session::Session& session, const std::string& path);

/// Pairs predictions of the newer model with those of the reference: `older` are a model's, else null. With `by_id`
/// only inputs that both name; without it the data must be the same. Throws InputError when data differs or nothing is
/// left.
Comparison pair_rows(session::Session& session, const Reference& reference, bool by_id,
                     const std::vector<observers::SampleRow>* older, const std::vector<observers::SampleRow>& newer);

/// One pass over the session's tests, both models together; `groups` watch the newer one. `task` is how the newer one
/// is judged where that differs from the session's in its metric; may be null.
Comparison run_both(session::Session& session, const Reference& reference, bool by_id,
                    const std::vector<const observers::PartPredictions*>& groups = {},
                    const observers::PredictionSettings* task = nullptr);

}  // namespace netmend::compare
