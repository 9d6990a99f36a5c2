// The grid of L. Mühlhahn's thesis (2024, §5.1): four networks, three sizes of training data, two lengths of training,
// four measures, all mutation functions and values, with and without training between rounds. Trials that differ only
// in when they stop share one trajectory: it is computed once, and the rules are replayed over it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "repair/sbfl_mutation.h"
#include "trials/boxes.h"
#include "trials/store.h"

namespace netmend::studies {

using trials::Box;
using trials::Store;

struct GridOptions {
  std::vector<std::string> networks = {"dnn1", "dnn2", "cnn1", "cnn2"};
  bool as_published = false;
  bool trained = false, untrained = true;  ///< with training between rounds; without
  double sample = 1;                       ///< share of the trajectories that is run, drawn by the seed
  uint64_t seed = 42;
  int jobs = 0;
  std::string folder;  ///< where trained networks are kept
  std::string data = "fashion-mnist";
  int64_t limit = 0;  ///< of training inputs; 0 for all
};

/// Trajectories of the grid, and how many of them the store lacks.
struct GridSize {
  int64_t all = 0, chosen = 0, missing = 0, trials = 0;  ///< trials: trajectories × rules
};
GridSize grid_size(const Store& store, const GridOptions& options);

/// Runs what the store lacks. `progress` is told of progress. Throws Interrupted on Ctrl-C.
void run_grid(Store& store, const GridOptions& options, const std::function<void(const std::string&)>& progress);

/// One question of the thesis, its answer there and here.
struct Answer {
  std::string question, thesis, here;
  bool enough = false, holds = false;  ///< enough data to say
  std::vector<Box> accuracy,
      loss;  ///< relative to the network before (or trained as long without mutations): 1 is no change
};
std::vector<Answer> answer_questions(const Store& store, bool as_published);

constexpr int kGridVersion = 1;

}  // namespace netmend::studies
