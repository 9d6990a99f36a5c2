// What the network answers and how right that is: metric, loss, per class, confusion, and one row an input.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "executor/layers.h"
#include "stream/observer.h"

namespace netmend::observers {

/// How answers are judged.
enum class Task {
  kClasses,  ///< the largest of several outputs
  kBinary,   ///< one output: class 1 above the threshold
  kLabels,   ///< one yes or no an output
  kNumber,   ///< the output itself
  kNone,     ///< no labels
};
std::string task_name(Task task);

struct PredictionSettings {
  Task task = Task::kClasses;
  executor::Head head;
  int64_t outputs = 0;               ///< width of the output
  std::vector<std::string> classes;  ///< names of its columns
  std::string data;                  ///< spec, for messages
};

/// Chooses the task from labels and output, and checks one batch of real outputs: their shape, whether they are
/// probabilities although no softmax says so, and that labels are in range. Throws InputError.
PredictionSettings settle_task(const model::Graph& graph, const executor::Head& head, const dataset::Info& data,
                               const dataset::Batch& batch, const at::Tensor& output);

/// One input's row; its form on disk too.
struct SampleRow {
  int64_t sample = 0;
  double label = -1, predicted = -1;  ///< class numbers, or numbers
  float confidence = 0, loss = 0;
};

class Predictions : public stream::Observer {
 public:
  /// With `rows`, states carry a row an input.
  Predictions(PredictionSettings settings, bool rows);
  std::string name() const override { return "predictions"; }
  std::vector<stream::Tap> taps() const override;
  std::unique_ptr<stream::State> fresh() const override;
  const PredictionSettings& settings() const { return settings_; }

 private:
  PredictionSettings settings_;
  bool rows_;
};

struct PredictionState : stream::State {
  PredictionState(const PredictionSettings& settings, bool rows);
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  int64_t samples = 0, correct = 0, not_finite = 0;
  double loss = 0, absolute_error = 0, squared_error = 0;
  /// Classes × classes, rows are labels; empty for other tasks. Answers that are not finite are in no column: no class.
  std::vector<int64_t> confusion;
  std::vector<int64_t> label_counts;  ///< inputs of each class
  std::vector<SampleRow> rows;

 private:
  void judge(const at::Tensor& logits, const at::Tensor& labels, const std::vector<int64_t>& which);
  const PredictionSettings& settings_;
  bool keep_rows_;
};

struct ClassResult {
  std::string name;
  int64_t samples = 0, correct = 0, predicted = 0;
  double recall = 0, precision = 0;
};

struct PredictionResult {
  int64_t samples = 0, correct = 0, not_finite = 0;
  double accuracy = 0, loss = 0, mae = 0, rmse = 0;
  std::vector<ClassResult> per_class;
  std::vector<std::vector<int64_t>> confusion;
};
PredictionResult finish(const Predictions& observer, const PredictionState& state);

/// Settings as JSON and back, for state files.
nlohmann::json to_json(const PredictionSettings& settings);
PredictionSettings settings_from_json(const nlohmann::json& json);

}  // namespace netmend::observers
