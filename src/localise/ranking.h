// From evidence to a ranking: scores of units, of layers, and how they hold when other inputs had been drawn.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "localise/measures.h"
#include "model/layer.h"
#include "observers/spectrum.h"
#include "session/session.h"

namespace netmend::localise {

/// What was summed up over groups of inputs (observers::sample_group), failing inputs first: how often a unit was
/// active, or its part in the loss.
struct Evidence {
  at::Tensor sums;    ///< double side × group × unit
  at::Tensor inputs;  ///< double side × group
};
Evidence evidence_of(const observers::SpectrumState& state);

/// The evidence as it is (row 0) and as it would have been with other inputs: groups drawn with replacement. Draws that
/// hold no failing or no passing input say nothing and are left out.
struct Draws {
  at::Tensor failing, passing;                         ///< double draw × unit
  std::vector<double> failing_inputs, passing_inputs;  ///< by draw
  int64_t resamples() const { return int64_t(failing_inputs.size()) - 1; }
  Counts counts(int64_t draw, int64_t unit) const;
};
/// Depends on evidence, `resamples` and `seed` alone.
Draws draw(const Evidence& evidence, int64_t resamples, uint64_t seed);

/// Scores by a measure of counts, double draw × unit, all finite.
at::Tensor spectrum_scores(const Draws& draws, const Choice& choice, uint64_t seed);
/// Mean over failing inputs less mean over passing ones, in the same form.
at::Tensor difference_scores(const Draws& draws);
/// What a unit that is active as often as this one would score if that had nothing to do with failing.
double chance_score(const Counts& counts, const Choice& choice);

using session::UnitPlace;
/// Units in the order of the layers, as evidence counts them.
std::vector<UnitPlace> unit_places(const std::vector<model::Layer>& layers);

struct RankedUnit {
  size_t place = 0;  ///< in the list of places
  double score = 0;
  double in_top = 0;                    ///< share of resamples in which it is among the first `top`
  double first = 0;                     ///< and in which it is the first of all
  int64_t rank_low = 0, rank_high = 0;  ///< from 1; holds 95 % of the resamples
};
struct RankedLayer {
  size_t layer = 0;
  int64_t units = 0, in_top = 0;  ///< units, and those among the first `top`
  double mean = 0, best = 0;      ///< scores of its units
  double by_chance = 0;           ///< units among the first `top` when ranked at random
  double first = 0;               ///< share of resamples in which its mean is the highest
};
struct Ranking {
  int64_t top = 0, resamples = 0;
  std::vector<RankedUnit> units;    ///< all, most suspicious first
  std::vector<RankedLayer> layers;  ///< by mean score
  /// What a unit drawn at random can expect.
  double random_rank() const { return (double(units.size()) + 1) / 2; }
  double random_in_top() const { return units.empty() ? 0 : double(top) / double(units.size()); }
};
/// Higher scores first; equal ones: deeper layer first, then smaller unit. `top` is cut to the number of units. Without
/// resamples shares are NaN and intervals are the rank itself.
Ranking rank_units(const std::vector<UnitPlace>& places, const at::Tensor& scores, int64_t top);

}  // namespace netmend::localise
