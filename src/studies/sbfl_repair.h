// The grid of L. Mühlhahn's thesis (2024, §5.1): four networks, three sizes of training data, two lengths of training,
// four measures, all mutation functions and values, with and without training between rounds. Trials that differ only
// in when they stop share one trajectory: it is computed once, and the rules are replayed over it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "repair/sbfl_mutation.h"
#include "studies/tables.h"
#include "trials/boxes.h"
#include "trials/store.h"

namespace netmend::studies {

using trials::Box;
using trials::Store;

inline const std::vector<std::string> kSizes = {"full", "half", "quarter"};
inline const std::vector<std::string> kMeasures = {"tarantula", "ochiai", "dstar", "random"};

/// One trajectory of the grid, as the store names it.
struct GridKey {
  std::string network, size;
  int epochs = 1;
  std::string measure, mutation;
  double value = 0;
  bool trained = false, published = false;
  std::string text() const;
};
std::optional<GridKey> parse_key(const std::string& text);

/// Eight ways to stop: four conditions, with and without offsets.
struct GridRule {
  std::string when;
  bool offsets;
  repair::StopRule rule;
};
std::vector<GridRule> grid_rules(bool published);

struct GridOptions {
  std::vector<std::string> networks = {"dnn1", "dnn2", "cnn1", "cnn2"};
  bool as_published = false;
  bool trained = false, untrained = true;  ///< with training between rounds; without
  double sample = 1;                       ///< share of the trajectories that is run, drawn by the seed
  Slice slice;                             ///< and of these only a part; up to 24 parts hold whole networks
  bool bases_only = false;                 ///< train the networks and their benchmarks, and run no trajectory
  uint64_t seed = 42;
  int jobs = 0;
  std::string device = "cpu";
  bool one_by_one = false;  ///< each network by itself, to compare with
  std::string folder;       ///< where trained networks are kept
  std::string bases;        ///< where they are instead; "" for there
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

/// A claim of the thesis put to the data: a difference that is above 0 where it holds, taken in each block (the
/// networks, sizes and lengths that both sides share), and tested over blocks.
struct GridClaim {
  std::string text;
  bool loss = false;  ///< of the loss instead of the accuracy
  int64_t blocks = 0;
  double mean = 0, low = 0, high = 0, p = 1;
  std::string verdict;  ///< holds, does not hold, not shown, too little data
};

/// One question of the thesis in one half of one form of the grid. Figures are relative to the network before (or
/// trained as long without mutations): 1 is no change, of the loss less is better.
struct Answer {
  std::string question, thesis;
  bool published = false, trained = false;
  std::vector<Box> accuracy, loss;
  std::vector<GridClaim> claims;
};
/// Of all forms and halves that the store has trajectories of, as published first.
std::vector<Answer> answer_questions(const Store& store);

/// Table 5.2: the networks before any mutation.
struct BaseRow {
  std::string network;
  int epochs = 1;
  std::string size;
  double accuracy = 0, loss = 0, paper_accuracy = 0, paper_loss = 0;
};
std::vector<BaseRow> base_rows(const Store& store);

constexpr int kGridVersion = 3;

}  // namespace netmend::studies
