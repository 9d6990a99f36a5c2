// One question, all the measures: which units are to blame for the failures of a network on its data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "localise/ablation.h"
#include "localise/measures.h"
#include "localise/mutant_options.h"
#include "localise/ranking.h"
#include "observers/predictions.h"
#include "observers/target.h"
#include "stream/pass.h"

namespace netmend::localise {

struct BlameOptions {
  std::vector<Choice> choices;  ///< the first one leads
  bool resample_all = false;    ///< else only the first gets resamples
  int64_t top = 10, resamples = 100;
  double threshold = 0;            ///< a unit is active above it
  bool before_activation = false;  ///< and its value is taken there
  observers::Target target;
  uint64_t seed = 42;
  AblationOptions ablation;
  MutantOptions mutants;
  stream::PassOptions pass;
  /// Predictions that are known already: then there is no pass, and measures that need counts of activations cannot be
  /// asked for.
  const std::vector<observers::SampleRow>* rows = nullptr;
};

struct Located {
  Choice choice;
  Ranking ranking;
};

struct Blame {
  std::vector<model::Layer> layers;
  std::vector<UnitPlace> places;
  std::vector<Counts> counts;    ///< by place; empty without failing or without passing inputs
  std::vector<Located> located;  ///< as the choices
  observers::PredictionResult result;
  int64_t failing = 0, passing = 0;
  int64_t gradients_failing = 0, gradients_passing = 0;  ///< inputs that the gradient measure used
  std::optional<Ablation> ablated;
  double seconds = 0;  ///< of the pass
  double scoring = 0;  ///< of all that came after it
  bool interrupted = false;

  /// Units that are active on every input: no measure of counts can tell them apart.
  int64_t always_active() const;
  std::string unit(size_t place) const { return model::unit_name(layers[places[place].layer], places[place].unit); }
};

/// One pass counts the spectra of all units; everything else is made of the counts, or computed on a sample.
Blame blame(const stream::Subject& subject, const observers::PredictionSettings& settings,
            std::vector<model::Layer> layers, const BlameOptions& options);

/// Whether any of them looks at more than counts.
bool uses(const std::vector<Choice>& choices, Measure::Of of);

}  // namespace netmend::localise
