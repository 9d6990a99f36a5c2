// MuFF's inhibitors: a share of a layer's weights, or of what reads its units, shrinks by a strength that is searched
// for. The paper's parameters are not public; the definition here is ours:
//   weights: a share r of the layer's weights, drawn once, w ← (1 − s)·w;
//   neurons: a share r of the layer's units, at least one, outgoing weights ← (1 − s)·w.
// A strength kills when, in 95 % of all pairs of draw and original network, McNemar's test gives p < 0.05 and a point
// of accuracy at least is lost; with five originals and more the accuracies must also differ by an exact sign-flip test
// (p < 0.05) with a paired effect of 0.5. The weakest such strength is found by bisection to 0.01.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "edits/edit.h"
#include "model/layer.h"
#include "observers/task.h"

namespace netmend::stream {
struct Subject;
}

namespace netmend::mutants {

enum class Inhibitor { kWeights, kNeurons };

struct StrengthTried {
  double strength = 0;
  double killed = 0;  ///< share of pairs of draw and original
  double lost = 0;    ///< mean points of accuracy
  bool kills = false;
};
struct Strength {
  Inhibitor kind = Inhibitor::kWeights;
  int layer = -1;
  double share = 1;
  bool killable = false;
  double weakest = 1;  ///< that kills
  std::vector<StrengthTried> tried;
  bool monotone() const;  ///< no strength kills that is weaker than one that does not
};

/// A trained network with its data; several are re-trainings of one.
struct Original {
  const stream::Subject* subject = nullptr;
  const observers::PredictionSettings* settings = nullptr;
  const std::vector<model::Layer>* layers = nullptr;  ///< in the same order for all
};

/// How many draws are made: 5, and 1 where nothing is left to draw.
int draws_of(double share);
/// Throws InputError where weights are shared, quantised or computed, or nothing linear reads the units.
std::vector<edits::Edit> inhibited_edits(const model::Graph& graph, const model::Layer& layer, Inhibitor kind,
                                         double share, double strength, uint64_t draw);
/// For every layer, kind and share of 0.1, 0.25, 0.5 and 1, on all of the originals' data.
std::vector<Strength> find_strengths(std::span<const Original> originals, int jobs);

}  // namespace netmend::mutants
