// What one epoch of a training came to.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace netmend::training {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Epoch {
  int64_t number = 0;                 ///< from 1
  double loss = 0, accuracy = kNone;  ///< on the training data, as it went along; accuracy of classes only
  double val_loss = kNone, val_accuracy = kNone;
  double rate = 0;                      ///< learning rate at its end
  double seconds = 0, val_seconds = 0;  ///< of training, of validation
};

/// In which order an epoch, counted from 1, goes over the inputs.
std::vector<int64_t> epoch_order(int64_t inputs, uint64_t seed, int64_t epoch);

}  // namespace netmend::training
