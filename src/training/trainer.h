// Trains a network: epochs over shuffled data, validation after each, checkpoints to go on from. The same task gives
// the same bits, whatever the number of workers and however often it was stopped and resumed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/dataset.h"
#include "model/graph.h"
#include "training/epoch.h"
#include "training/loss.h"
#include "training/options.h"

namespace netmend::training {

struct Task {
  std::string model_name;  ///< for messages
  model::Graph graph;
  model::ValueId output = model::kAbsent;  ///< a trailing softmax or sigmoid is looked through
  std::shared_ptr<const dataset::Dataset> train;
  std::shared_ptr<const dataset::Dataset> validation;  ///< may be null
  Options options;
};

/// The loss is no longer finite.
struct Diverged : InputError {
  using InputError::InputError;
};

class Trainer {
 public:
  /// Throws InputError when model, data and options do not go together.
  explicit Trainer(Task task);
  ~Trainer();

  /// The epochs that follow are recorded in this file (docs/training.md); `program` is the command line.
  void record_to(const std::string& path, const std::vector<std::string>& program);
  bool done() const;
  /// Runs the next epoch; `on_step` hears how many inputs each step took. Throws Interrupted on Ctrl-C, and Diverged
  /// when the loss is no longer finite; the state is then that of the last whole epoch, and the record ends.
  const Epoch& run_epoch(const std::function<void(int64_t inputs, double loss)>& on_step = {});
  const std::vector<Epoch>& history() const;

  /// The model with the weights it has now.
  model::Graph result() const;
  /// Loss, accuracy of the weights as they are on the validation data; both NaN without any.
  std::pair<double, double> validate() const;

  /// All that is needed to go on, in one file that is written completely or not at all.
  void save(const std::string& path) const;
  /// Goes on from such a file. Throws InputError when it belongs to another task or is damaged.
  void load(const std::string& path);

  int64_t parameters() const;
  const LossForm& loss() const;
  /// What the user should know about how the data is fed.
  const std::vector<std::string>& notes() const;
  /// That the batch is too small for all workers to compute at once; "" where it is not.
  std::string idle_workers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::training
