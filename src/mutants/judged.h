// Mutants run on data: which input kills which, by what-if.
#pragma once

#include <vector>

#include "mutants/kills.h"
#include "mutants/mutants.h"
#include "observers/task.h"

namespace netmend::mutants {

struct Judged {
  KillTable table;
  std::vector<double> accuracy;     ///< by mutant
  std::vector<int64_t> changed;     ///< by mutant: predictions that differ from the original's
  std::vector<uint64_t> behaviour;  ///< by mutant: a hash of all predictions and of whether they are right
  std::vector<bool> same;           ///< by mutant: no prediction and no loss differs
  uint64_t original = 0;            ///< behaviour of the network as it is
  double original_accuracy = 0;
};

/// On all of the subject's data. Throws InputError without labels, and Interrupted.
Judged judge(const stream::Subject& subject, const observers::PredictionSettings& settings,
             const std::vector<model::Layer>& layers, const std::vector<Mutant>& mutants, Kill kill, int jobs);

/// Whether the mutant's outputs equal the original's on a batch of the inputs, up to rounding: predictions and loss may
/// be equal without that.
bool same_outputs(const stream::Subject& subject, const observers::PredictionSettings& settings, const Mutant& mutant);

/// The class of every input, by its label; 0 for all where labels are no classes.
std::vector<int32_t> classes_of(const stream::Subject& subject, const observers::PredictionSettings& settings);

}  // namespace netmend::mutants
