// What finds and what repairs a fault: known faults are planted into sound networks, every measure ranks the units, and
// every repair is judged by how much of the lost accuracy it wins back on the hold-out set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "repair/problem.h"
#include "trials/store.h"

namespace netmend::studies {

using trials::Store;

/// A sound network with the data it is judged on.
struct Sound {
  std::string name;  ///< `lenet5@fashion-mnist`
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;
};

struct PlantedOptions {
  std::vector<std::string> kinds;    ///< faults::kinds() of units
  int64_t seeds = 3;                 ///< faults of each kind and network
  double at_least = 0.02;            ///< accuracy that a fault must cost to count
  std::vector<std::string> repairs;  ///< methods; empty for none
  std::string budget = "quick";      ///< of each repair
  uint64_t seed = 42;
  int jobs = 0;
};

/// Runs what the store does not hold yet. `progress` is told what is done. Throws Interrupted on Ctrl-C.
void run_planted(Store& store, const Sound& sound, const PlantedOptions& options,
                 const std::function<void(const std::string&)>& progress);

/// One planted fault and what became of it.
struct PlantedTrial {
  std::string network, kind, unit;
  int64_t seed = 0, units = 0;
  double sound = 0, faulty = 0;                        ///< accuracy on all inputs
  std::vector<std::pair<std::string, int64_t>> ranks;  ///< of the planted unit, by measure; from 1
  struct Repair {
    std::string method, verdict;
    double lost = 0, won = 0;  ///< accuracy on the hold-out part: lost by the fault, won back by the repair
    int64_t fixed = 0, broken = 0;
    double seconds = 0;
  };
  std::vector<Repair> repairs;
};
std::vector<PlantedTrial> read_planted(const Store& store);

constexpr int kPlantedVersion = 3;

}  // namespace netmend::studies
