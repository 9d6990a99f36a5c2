// A network on a few labelled inputs, as often as set-ups are tried, and what makes one set of predictions better
// than another.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "observers/predictions.h"
#include "stats/intervals.h"
#include "stream/pass.h"

namespace netmend::preflight {

using Rows = std::vector<observers::SampleRow>;

/// Predictions judged one by one, by the observer that judges them everywhere.
Rows judge(const observers::PredictionSettings& settings, const at::Tensor& values, const dataset::Batch& batch);
/// Error rate, or the mean absolute error for numbers.
double mean_error(const observers::PredictionSettings& settings, const Rows& rows);
double mean_loss(const Rows& rows);
/// The uniform-prediction loss, ln C.
double uniform_loss(const observers::PredictionSettings& settings);
/// Accuracy, or the mean absolute error for numbers, with its interval.
stats::Estimate figure(const observers::PredictionSettings& settings, const Rows& rows);
std::string figure_text(const observers::PredictionSettings& settings, const stats::Estimate& figure);

/// Changes of verdict from one set of predictions to another for the same inputs.
struct Changes {
  int64_t fixed = 0, broken = 0;
  double p = 1;  ///< McNemar's exact test
};
Changes changes(const observers::PredictionSettings& settings, const Rows& rows, const Rows& other);

/// Is `better` so much better than `rows` on the same inputs that something must be behind it?
using Convinces = bool(const observers::PredictionSettings& settings, const Rows& rows, const Rows& better);
/// By mistakes, and not by chance: a third of them and a point at least, or a fifth and three points, or twelve points.
Convinces improves_accuracy;

/// Negative log-likelihood of each label under softmax(values / temperature), from what `wanted` gives; empty for tasks
/// without classes.
std::vector<double> losses(const observers::PredictionSettings& settings, const at::Tensor& values,
                           const dataset::Batch& batch, double temperature);
struct Fitted {
  double temperature = 1;
  std::vector<double> losses;
  double mean() const;
};
/// The temperature in 1/most … most under which the loss is least. Networks differ in how confident they are (mixup,
/// label smoothing, too long a training); what they know is left when that is taken out.
Fitted fit_temperature(const observers::PredictionSettings& settings, const at::Tensor& values,
                       const dataset::Batch& batch, double most);
/// A bias for each class that makes every class as frequent in the predictions as in the labels: what a
/// damaged bias of the last layer would explain. Undefined for tasks without classes.
at::Tensor fit_biases(const observers::PredictionSettings& settings, const at::Tensor& values,
                      const dataset::Batch& batch);
/// Values as they would be with such biases, in the form that `judge` takes.
at::Tensor with_biases(const observers::PredictionSettings& settings, const at::Tensor& values, const at::Tensor& bias);

/// Rows of negative numbers whose exponentials sum to 1.
bool looks_like_log_probabilities(const at::Tensor& columns);

/// The inputs that everything is tried on.
struct Trial {
  static constexpr int64_t kInputs = 512;  ///< a set-up is judged on, and at least as many again to confirm it
  static constexpr int64_t kMostFresh = 2048;
  static constexpr int64_t kFirstLook = 128;  ///< of these, the first look at each

  const stream::Subject& subject;
  const observers::PredictionSettings& settings;
  int jobs = 0;
  dataset::Batch first;                ///< mixed: sorted data would show one class in the first look
  Rows asis;                           ///< the first, judged without any change; empty without labels
  mutable std::vector<int64_t> fresh;  ///< samples of the last `read_fresh`

  Trial(const stream::Subject& subject, const observers::PredictionSettings& settings, int jobs);

  /// Others, to confirm on: more of them the faster the network is. Up to `work` multiply-adds.
  dataset::Batch read_fresh(double work) const;
  /// Neither the first nor those of `read_fresh(work)`, spread over the data; the first `skip` of them are left out.
  /// Empty when there are no more.
  dataset::Batch read_further(int64_t skip, int64_t count) const;
  model::ValueId wanted() const;  ///< what is judged
  std::vector<at::Tensor> answers(const dataset::Batch& batch, const std::vector<model::ValueId>& values) const;
  Rows rows(const dataset::Batch& batch) const { return judge(settings, answers(batch, {wanted()})[0], batch); }
  /// The majority-class baseline.
  double chance() const;
  bool near_chance() const;
  std::string value_name(model::ValueId id) const { return subject.graph.values[size_t(id)].name; }
  /// The model's input that quantities go into.
  std::string input_name() const;
};

/// `input.x = { scale = "1/255" }`; "" for no options.
std::string input_line(const std::string& input, const std::map<std::string, std::string>& options);

}  // namespace netmend::preflight
