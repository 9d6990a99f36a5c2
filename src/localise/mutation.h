// Mutation-based localisation: a unit is suspicious when changing it turns failures into correct predictions. MUSE
// (Moon et al. 2014) and Metallaxis (Papadakis and Le Traon 2015), with the mutants of deepmufl (Ghanbari et al. 2023):
// a unit's weights, or its bias, plus 1, minus 1, doubled, halved. deepmufl blames layers; here units are blamed, and
// layers by their units.
#pragma once

#include <vector>

#include "localise/mutant_options.h"
#include "localise/ranking.h"
#include "stream/pass.h"
#include "whatif/whatif.h"

namespace netmend::localise {

/// Counts by mutant, failing inputs first.
struct MutationEvidence {
  /// Failing inputs that become right, passing ones that become wrong; behind the mutants a column per layer, of inputs
  /// that any mutant of it turns.
  Evidence turned;
  Evidence changed;            ///< failing inputs whose prediction changes at all, passing ones that become wrong
  std::vector<size_t> places;  ///< by mutant: its unit
  std::vector<size_t> layers;  ///< by mutant: its layer
};

/// On an even sample from both sides; fewer mutants per unit where there are many units.
MutationEvidence mutation_evidence(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                   const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                                   const std::vector<int64_t>& passing, const MutantOptions& options, int jobs);

/// The original definition: mean over a unit's mutants of f2p/F − α·p2f/P, where α is the ratio of both sums over all
/// mutants. Over all mutants the terms sum to 0. `draws` of MutationEvidence::turned; double draw × unit.
at::Tensor muse_scores(const Draws& draws, const std::vector<size_t>& places, size_t units);
/// As deepmufl's program computes it: α by layer, the product of the shares of failing and of passing inputs that any
/// mutant of the layer turns, and the size of the difference.
at::Tensor published_muse_scores(const Draws& draws, const std::vector<size_t>& places,
                                 const std::vector<size_t>& layers, size_t units);
/// The largest f/√((f + p)·F) of a unit's mutants. `draws` of MutationEvidence::changed.
at::Tensor metallaxis_scores(const Draws& draws, const std::vector<size_t>& places, size_t units);

}  // namespace netmend::localise
