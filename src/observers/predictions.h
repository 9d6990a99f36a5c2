// What the network answers and how right that is: metric, loss, per class, confusion, and one row an input.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "executor/layers.h"
#include "observers/result.h"
#include "observers/task.h"
#include "stream/observer.h"

namespace netmend::observers {

/// Chooses the task from labels and output, and checks one batch of real outputs: their shape, whether they are
/// probabilities although no softmax says so, and that labels are in range. Throws InputError.
PredictionSettings infer_task(const model::Graph& graph, const executor::Head& head, const dataset::Info& data,
                              const dataset::Batch& batch, const at::Tensor& output,
                              const TaskOverrides& overrides = {});
/// Outputs as inputs × columns: axes of size 1 behind the columns are dropped.
at::Tensor as_columns(const at::Tensor& output);
/// Every row is a distribution: nothing negative, sums of 1; of one column: all in 0 … 1.
bool look_like_probabilities(const at::Tensor& columns);

/// How scores of inputs with and without a label are spread, in bins that are narrow relative to the score: enough for
/// the area under the curve to four digits, in bounded memory.
class ScoreCounts {
 public:
  void add(double score, bool positive);
  void merge(const ScoreCounts& later);
  void save(std::ostream& out) const;
  void load(std::istream& in);
  /// The chance that an input with the label scores above one without it, with DeLong's interval.
  stats::Estimate area() const;

 private:
  std::map<int32_t, std::array<int64_t, 2>> counts_;  ///< by bin: without, with the label
};

struct PredictionState;

class Predictions : public stream::Observer {
 public:
  using State = PredictionState;
  /// With `rows`, states carry a row an input.
  Predictions(PredictionSettings settings, bool rows);
  std::string name() const override { return "predictions"; }
  int version() const override { return 2; }
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
  double loss = 0, loss_squares = 0, absolute_error = 0, squared_error = 0, fourth_powers = 0;
  /// Classes × classes, rows are labels; empty for other tasks. Answers that are not finite are in no column: no class.
  std::vector<int64_t> confusion;
  std::vector<int64_t> label_counts;  ///< inputs of each class
  /// For each label of Task::kLabels: inputs with it that were found, found without it, missed.
  std::vector<std::array<int64_t, 3>> found_wrong_missed;
  std::vector<ScoreCounts> scores;  ///< one a class or label where the area under the curve is taken
  std::vector<SampleRow> rows;

 private:
  /// Throws InputError when what was loaded cannot have been counted.
  void require_consistent() const;
  void judge(const at::Tensor& logits, const at::Tensor& labels, const std::vector<int64_t>& which);
  SampleRow judge_class(const double* values, int64_t label);
  SampleRow judge_labels(const double* values, const double* targets);
  SampleRow judge_number(const double* values, const double* targets);
  void add_loss(double value);
  const PredictionSettings& settings_;
  bool keep_rows_;
};

PredictionResult finish(const Predictions& observer, const PredictionState& state);

/// Settings as JSON and back, for state files.
nlohmann::json to_json(const PredictionSettings& settings);
/// Throws InputError that names the place.
PredictionSettings settings_from_json(const JsonView& json);

}  // namespace netmend::observers
