// What `train` and `demo` share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "netmend/shared.h"
#include "training/trainer.h"

namespace netmend::app {

void print_epoch_head();
void print_epoch(const training::Epoch& epoch);
Json epochs_json(const std::vector<training::Epoch>& history);

struct TrainingEnd {
  int64_t epochs = 0;  ///< run now, not those of a checkpoint
  double seconds = 0;  ///< of training, without judging
  bool interrupted = false;
};
/// Runs the epochs that are left, with a bar, and writes the checkpoint after each when there is a name for it.
TrainingEnd run_training(const Common& common, training::Trainer& trainer, int64_t inputs,
                         const std::string& checkpoint, const std::function<void(const training::Epoch&)>& on_epoch);
/// The model with its weights as they are now, and what it should know about itself in its metadata.
void write_trained(const training::Trainer& trainer, const training::Options& options, const dataset::Info& data,
                   const std::string& path);

}  // namespace netmend::app
