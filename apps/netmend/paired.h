// Two sets of answers to the same inputs, taken in one pass: a model's and those of a reference, which is another
// model, a run folder of eval, or baseline.json.
#pragma once

#include <optional>
#include <vector>

#include "netmend/baseline.h"
#include "netmend/shared.h"
#include "observers/flips.h"

namespace netmend::app {

/// An input whose answer changed sides.
struct Flipped {
  int64_t sample;
  observers::Change change;
  double label, before, after;  ///< `before` is NaN when only right or wrong was kept
  float confidence;
};

struct Compared {
  observers::Flips flips;
  std::vector<Flipped> list;
  observers::PredictionResult before, after;  ///< `before` only of a model
  Baseline newer;                             ///< the newer answers, to be kept
  stream::PassResult pass;
  int64_t missing = 0;  ///< inputs that the reference does not know
};

/// One of the two.
struct Reference {
  std::string name;
  std::optional<Judged> model;
  std::optional<Baseline> baseline;
};
/// Against a model the data of `about` is planned: both are judged on everything, or on the same part. Throws
/// InputError when answers cannot be compared.
Reference open_reference(const Common& common, const CaseOptions& options, Case& about, const std::string& path);

/// With `by_id` only inputs that both name; without it the data must be the same. `also` watch the newer model; their
/// results are the last of the pass's. Throws InputError when data differs or nothing is left.
Compared run_both(const Common& common, const Case& about, const Reference& reference, bool by_id,
                  const std::vector<const stream::Observer*>& also = {});

}  // namespace netmend::app
