// What all checks look at, observed once: the network, its splits, its predictions, the values of its units, and what
// the data itself shows. One pass over training data, then one over the tests, serve every check.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adequacy/assess.h"
#include "census/census.h"
#include "compare/paired.h"
#include "findings/finding.h"
#include "observers/coverage/profile.h"
#include "observers/predictions.h"
#include "observers/top_predictions.h"
#include "preflight/preflight.h"
#include "session/session.h"
#include "session/split.h"

namespace netmend::checks {

/// What a check may ask the pass for.
enum Watch : unsigned {
  kWatchPredictions = 1,  ///< ObservedSplit::rows, result, top
  kWatchUnits = 2,        ///< ObservedSplit::units
  kWatchCensus = 4,       ///< ObservedSplit::census
  kWatchCriteria = 8,     ///< Observed::adequacy
};

/// A split as the pass saw it.
struct ObservedSplit {
  std::string name;                              ///< test or train
  std::shared_ptr<const dataset::Dataset> data;  ///< what was used: all of it, or a sample
  int64_t whole = 0;                             ///< inputs there are
  std::vector<observers::SampleRow> rows;        ///< one per input, in the order of `data`; empty: it was not run
  observers::PredictionResult result;
  std::vector<observers::TopRow> top;  ///< one per input where predictions are classes
  /// Ranges and peaks of all hidden units, traces of the last hidden layer; null where there is no hidden layer.
  std::unique_ptr<observers::Profile> units;
  std::unique_ptr<census::Census> census_observer;  ///< the state looks at it
  std::unique_ptr<census::CensusState> census;
};

struct SimpleModels;

struct Observed {
  session::Session& session;
  const preflight::Preflight* preflight = nullptr;  ///< null for a model alone
  observers::PredictionSettings settings;           ///< the task; without data only its head
  std::optional<ObservedSplit> test, train;
  std::vector<model::Layer> layers;              ///< all, in order
  observers::SpacePtr space;                     ///< the hidden ones; null when there are none
  std::optional<adequacy::Assessment> adequacy;  ///< of the tests
  std::optional<compare::Reference> reference;
  std::optional<compare::Comparison> comparison;  ///< with the reference
  bool simple_tried = false;                      ///< simple_models() keeps its result
  std::shared_ptr<const SimpleModels> simple;
  bool interrupted = false;  ///< by Ctrl-C: the splits may be cut short

  const stream::Subject& subject() const;  ///< the model, fed by the tests
  uint64_t seed() const { return session.request().seed; }
  int jobs() const { return session.request().jobs; }
  /// The words that every finding's commands may use: case, model, data, train.
  findings::Words words(findings::Words more = {}) const;
};

/// Runs the network over the splits with all that `watch` asks for. Without predictions the data alone is read.
/// A reference model goes over the tests in the same pass; `reference` may be null, and is taken over.
Observed observe(session::Session& session, const preflight::Preflight* preflight, unsigned watch,
                 std::optional<compare::Reference>* reference = nullptr);
/// The model alone: no data is read.
Observed observe_model(session::Session& session);

}  // namespace netmend::checks
