// What a repair works on: a network, the failures that should go, and data in three splits. A repair is searched on
// the search split, chosen on the selection split, and judged on the hold-out split, which it never saw.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "edits/edit.h"
#include "localise/ranking.h"
#include "observers/predictions.h"
#include "observers/target.h"
#include "repair/sbfl_choice.h"
#include "stream/pass.h"

namespace netmend::repair {

using Clock = std::chrono::steady_clock;

struct Parts {
  std::vector<int64_t> search, selection, holdout;  ///< samples, ascending
};
struct Shares {
  double search = 0.5, selection = 0.2;  ///< of the data; the rest is held out
  int64_t most_search = 12000, most_selection = 6000, most_holdout = 20000;
};
/// Every stratum (a number per sample) is shared out alike. Samples with equal hashes are duplicates and stay together,
/// so that what is held out was not seen under another number; empty for no hashes. The same seed gives the same parts.
Parts split(const std::vector<int64_t>& strata, const Shares& shares, uint64_t seed,
            const std::vector<uint64_t>& hashes = {});

struct Problem {
  const stream::Subject& subject;
  const observers::PredictionSettings& settings;
  const std::vector<model::Layer>& layers;  ///< all of them, in order
  std::vector<observers::SampleRow> rows;   ///< predictions of the network as it is, by sample
  Parts parts;
  observers::Target target;                ///< which failures should go
  bool targeted = false;                   ///< not simply all of them
  std::vector<localise::UnitPlace> units;  ///< whose weights may change; empty: they are searched for
  uint64_t seed = 42;
  int jobs = 0;
  bool quiet = false;
  Budget budget = Budget::unlimited();  ///< for all searches together
  SbflChoice sbfl = {};

  /// Multiply-adds of a forward pass over so many inputs.
  double work(size_t inputs) const { return double(inputs) * subject.cost; }
  /// Of `samples` those on one side of the target, by the predictions of the network as it is.
  std::vector<int64_t> on(observers::Side side, const std::vector<int64_t>& samples) const;
};

/// How well a network does on a part.
struct Figure {
  double metric = 0;  ///< the user's, as it is
  double loss = 0, accuracy = 0;
  double target = 0;  ///< share of the target's failing and passing inputs that are right; NaN without target
  double score = 0;   ///< what a search looks at: larger is better
};

/// How far two networks' scores on the selection part may lie apart by chance: a standard error where the score is a
/// share of correct predictions, a hundredth of it elsewhere.
double score_error(const Problem& problem, const Figure& figure);

/// The predictions of the edited network for some samples, and its figures.
struct Evaluation {
  std::vector<observers::SampleRow> rows;  ///< in the order of the samples; `sample` counts in the whole data
  observers::PredictionResult result;
  Figure figure;
};
Evaluation evaluate(const Problem& problem, const std::vector<edits::Edit>& edits, const std::vector<int64_t>& samples);

/// The network with edits, on the data of the problem or a part of it.
stream::Subject edited(const Problem& problem, const std::vector<edits::Edit>& edits,
                       const std::vector<int64_t>* samples = nullptr);

/// How many numbers the edits change.
int64_t changed_values(const std::vector<edits::Edit>& edits);

struct Candidate {
  std::string method;
  std::string words;  ///< what was done, for people
  std::vector<edits::Edit> edits;
  std::vector<std::string> units;  ///< whose weights changed; empty when that is no way to put it
  Figure selection;
};

}  // namespace netmend::repair
