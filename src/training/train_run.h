// A training from files to a file: data, options, checkpoint, the trained model. No tensors: commands and other
// programs call it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "training/epoch.h"

namespace netmend::dataset {
class Dataset;
}
namespace netmend::model {
struct Graph;
}

namespace netmend::training {

struct TrainRequest {
  std::string model;              ///< ONNX file
  std::string data, train, test;  ///< data specs; `data` alone: its training and its test split
  std::string output, config;     ///< the output that is trained, netmend.toml; "": the usual ones
  std::string optimiser = "adam", schedule = "constant";
  std::string loss;        ///< "": what fits labels and outputs
  std::string init;        ///< how fresh weights are drawn; "": those of the file
  std::string checkpoint;  ///< written after each epoch; "" for none
  double rate = 0.001, momentum = 0.9, decay = 0;
  double clip = 0;          ///< largest norm of the gradient of all parameters; 0: any
  double validation = 0.1;  ///< share of the training data that is kept aside where there is no test data
  int64_t epochs = 5, batch = 32;
  int64_t limit = 0;    ///< only the first training inputs; 0 for all
  bool resume = false;  ///< go on from the checkpoint when it is there
  uint64_t seed = 42;
  int jobs = 0;
  std::string device = "cpu";         ///< auto: decided by network, data and epochs
  std::string precision = "float32";  ///< on a GPU that auto chooses
  bool quiet = false;
  /// Changes the network before it is trained; may be empty.
  std::function<void(model::Graph& graph, const dataset::Dataset& train)> change;
  std::function<void(const std::string&)> note;  ///< told what the user should know; may be empty
};

struct TrainingEnd {
  int64_t epochs = 0;  ///< run now, not those of a checkpoint
  double seconds = 0;  ///< of training, without validation
  bool interrupted = false;
};

class TrainRun {
 public:
  /// Throws InputError when model, data and options do not go together.
  explicit TrainRun(TrainRequest request);
  ~TrainRun();

  int64_t parameters() const;
  int64_t inputs() const;                         ///< that are trained on
  const std::string& data() const;                ///< spec
  const std::string& validation() const;          ///< spec; "" without any
  const std::vector<std::string>& files() const;  ///< of the training data
  const std::vector<Epoch>& history() const;

  /// The epochs that follow are recorded in this file (docs/training.md).
  void record_to(const std::string& path, const std::vector<std::string>& program);
  /// The epochs that are left, with a bar; `on_epoch` hears of each.
  TrainingEnd run(const std::function<void(const Epoch&)>& on_epoch);
  /// The model as it is now; its metadata say how inputs are prepared, its classes, and how it was trained.
  void write(const std::string& path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// All that a training can be repeated by, with absolute paths of files; and back. Throws InputError.
nlohmann::ordered_json request_json(const TrainRequest& request);
TrainRequest request_from(const JsonView& json);

nlohmann::ordered_json epochs_json(const std::vector<Epoch>& history);
/// history.csv
void write_history(const std::string& path, const std::vector<Epoch>& history);

/// A named architecture with fresh weights as a file. Returns its number of parameters. Throws InputError.
int64_t write_new_model(const std::string& name, const std::string& scheme, uint64_t seed, const std::string& path);

}  // namespace netmend::training
