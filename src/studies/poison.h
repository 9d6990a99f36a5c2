// A network trained further on wrong labels, as a fault.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "faults/plant.h"

namespace netmend::studies {

struct Poisoned {
  faults::Fault fault;
  std::string classes;  ///< `cat:dog`: what was said to be the other
};
/// Trained for two more epochs with nine labels in ten of one class replaced by another; with less strength fewer.
/// Throws InputError, Interrupted.
Poisoned poison_labels(const std::string& model_name, const model::Graph& graph, model::ValueId output,
                       const std::shared_ptr<const dataset::Dataset>& data, const std::vector<std::string>& classes,
                       double strength, uint64_t seed, int jobs);

}  // namespace netmend::studies
