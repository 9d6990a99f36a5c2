// A network on a few labelled inputs, as often as set-ups are tried, and what makes one set of predictions better
// than another.
#pragma once

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

/// Is `better` so much better than `rows` on the same inputs that something must be behind it?
using Convinces = bool(const observers::PredictionSettings& settings, const Rows& rows, const Rows& better);
/// By mistakes: a fifth of them and three points at least, or twelve points, and not by chance.
Convinces improves_accuracy;
/// By loss. Networks of plain rectifiers predict almost the same for inputs of another scale, but with far too high a
/// confidence: as it is the loss is above the uniform-prediction loss, with `better` below half of it, and the
/// predictions are as good.
Convinces lowers_loss;

/// The inputs that everything is tried on.
struct Trial {
  static constexpr int64_t kInputs = 512;     ///< a set-up is judged on, and as many again to confirm it
  static constexpr int64_t kFirstLook = 128;  ///< of these, the first look at each

  const stream::Subject& subject;
  const observers::PredictionSettings& settings;
  int jobs = 0;
  dataset::Batch first;  ///< mixed: sorted data would show one class in the first look
  Rows asis;             ///< the first, judged without any change; empty without labels

  Trial(const stream::Subject& subject, const observers::PredictionSettings& settings, int jobs);

  dataset::Batch read_fresh() const;  ///< as many others, to confirm on
  model::ValueId wanted() const;      ///< what is judged
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
