// What finds and what repairs a fault: known faults are planted into sound networks, every measure ranks the units, and
// every repair is judged by how much of the lost accuracy it wins back on the hold-out set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "repair/problem.h"
#include "studies/tables.h"
#include "trials/parts.h"

namespace netmend::studies {

using trials::Store;

/// A sound network with the data it is judged on.
struct Sound {
  std::string name;  ///< `lenet5@fashion-mnist`
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;
  std::vector<observers::SampleRow> rows;  ///< its predictions, by sample
};

std::vector<observers::SampleRow> predictions_of(const stream::Subject& subject,
                                                 const observers::PredictionSettings& settings, int jobs);

/// How many inputs the parts of a trial look at. A network that costs much gets fewer, so that a trial of any network
/// is some hundred times the work of a quick repair; one of a few million multiply-adds gets all that is usual.
struct TrialInputs {
  int64_t drawing = 0;   ///< a fault is drawn on these, and judged on all where they are not all
  int64_t draws = 0;     ///< faults that are drawn before a kind is given up
  int64_t ablation = 0;  ///< units are ablated on
  int64_t mutants = 0;   ///< units' mutants are judged on
  int64_t most_mutants = 0;
  int64_t robustness = 0;  ///< predictions that perturbations and attacks change
};
/// Of a network with so many multiply-adds per input, so many inputs and units.
TrialInputs trial_inputs(double cost, int64_t inputs, int64_t units);

struct PlantedOptions {
  std::vector<std::string> kinds;    ///< of faults::kinds()
  int64_t seeds = 3;                 ///< faults of each kind and network
  double at_least = 0.02;            ///< accuracy that a fault must cost to count
  std::vector<std::string> repairs;  ///< methods, after all failures; empty for none
  /// Methods that are after the faulty network's largest confusion alone, each with the whole budget.
  std::vector<std::string> targeted;
  std::string budget = "quick";  ///< of each repair
  int64_t limit = 0;             ///< of the tests; 0 for all
  Slice slice;                   ///< of the faults, in the order of networks, kinds and seeds
  uint64_t seed = 42;
  int jobs = 0;
};

/// Runs what the store does not hold yet of these networks, which are opened when it is their turn. `progress` is told
/// what is done. Throws Interrupted on Ctrl-C.
void run_planted(Store& store, const std::vector<std::string>& networks,
                 const std::function<Sound(const std::string&)>& open_network, const PlantedOptions& options,
                 const std::function<void(const std::string&)>& progress);

/// One planted fault and what became of it.
struct PlantedTrial {
  std::string network, kind;
  std::string place;  ///< the unit, the layer, or the classes
  int64_t seed = 0, units = 0;
  double sound = 0, faulty = 0;  ///< accuracy on all inputs
  /// Of the planted unit, or the best one of a damaged layer, by measure; from 1. None where no unit is damaged that
  /// measures rank: swapped classes, poisoned labels.
  std::vector<std::pair<std::string, int64_t>> ranks;
  /// Shares of correct hold-out predictions that change; NaN where it cannot be said.
  struct Changes {
    double mild = 0, pgd = 0;
  };
  Changes sound_changes, faulty_changes;
  int64_t inputs = 0;  ///< tests
  TrialInputs looked_at;
  double drawing = 0, ranking = 0, changes = 0;  ///< seconds
  struct Repair {
    std::string method, verdict;
    bool targeted = false;     ///< after the largest confusion alone
    double lost = 0, won = 0;  ///< accuracy on the hold-out part: lost by the fault, won back by the repair
    int64_t fixed = 0, broken = 0;
    int64_t target = 0, target_fixed = 0;     ///< failures it is after on the hold-out part; 0 unless it was kept
    int64_t target_right = 0;                 ///< of these what was found gets right, kept or not
    double seconds = 0, work = 0;             ///< `work`: multiply-adds
    bool kept = false;                        ///< what follows says something of kept repairs alone
    double right = 0;                         ///< predictions that were correct before
    double worst_class = 0, worst_group = 0;  ///< changes of accuracy; NaN where there is none
    Changes changes;
  };
  std::vector<Repair> repairs;
};
std::vector<PlantedTrial> read_planted(const Store& store);

constexpr int kPlantedVersion = 6;

}  // namespace netmend::studies
