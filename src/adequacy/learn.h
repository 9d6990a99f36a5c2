// Learning from training data what tests are held against, in one pass.
#pragma once

#include "observers/coverage/profile.h"
#include "stream/pass.h"

namespace netmend::adequacy {

struct LearnOptions {
  stream::PassOptions pass;
  bool importance = true;  ///< also the relevance of the traced layer's units, which costs a few passes more
  int64_t stride = 1;      ///< every n-th trace is kept
  int64_t of_class = -1;   ///< importance for correct predictions of this class; -1: of all
};

/// Why importance is not there, when it is not; "" when it is or was not asked for.
struct LearnedProfile {
  observers::Profile profile;
  std::string no_importance;
  double seconds = 0;
};
/// `layer` of the space is the one that is traced. Throws Interrupted.
LearnedProfile learn(const stream::Subject& training, const observers::PredictionSettings& settings,
                     observers::SpacePtr space, size_t layer, const LearnOptions& options);

/// The smallest stride with which traces of so many inputs take at most `bytes`.
int64_t stride_for(const observers::UnitSpace& space, size_t layer, int64_t inputs, double bytes);

}  // namespace netmend::adequacy
