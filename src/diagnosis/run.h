// A training run as rules see it: what was recorded, brought to the same words for every framework.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "records/record.h"

namespace netmend::diagnosis {

enum class Task { kUnknown, kRegression, kBinary, kMulticlass, kMultilabel };
std::string task_name(Task task);

/// The targets of the training data; NaN and 0 where they were not seen.
struct Targets {
  bool seen = false, whole = false, one_hot = false, sorted = false;
  int64_t width = 1, classes = 0, rows = 0, distinct = 0;
  double min = NAN, max = NAN, mean = NAN, deviation = NAN;
  std::map<std::string, double> counts;
};

struct Inputs {
  bool seen = false, whole = false, integer = false, nan = false;
  std::vector<int64_t> shape;
  double min = NAN, max = NAN, mean = NAN, deviation = NAN, deviation_ratio = NAN, largest_deviation = NAN;
  double duplicates = 0;  ///< share of rows
};

/// A layer or parameter over the steps that were looked at.
struct Track {
  std::string name;
  std::vector<int64_t> steps;
  std::vector<records::LayerStep> rows;
  const records::LayerStep& first() const { return rows.front(); }
  const records::LayerStep& last() const { return rows.back(); }
};

struct Run {
  const records::Record* record = nullptr;
  bool keras = false;
  std::string optimizer, loss, last, before_last;  ///< last: the function of the output; empty where unknown
  std::string source_optimizer, source_loss, source_fit;
  bool from_logits = false;  ///< the loss applies softmax or sigmoid itself
  double rate = NAN;
  int64_t outputs = 0;  ///< width of the output; 0 where unknown
  int64_t epochs_planned = 0, batch = 0, rows = 0, steps = 0, parameters = 0, fits = 0;
  std::vector<std::string> metrics;
  Task task = Task::kUnknown;
  Targets targets;
  Inputs inputs;
  records::Line graph;
  std::vector<records::Line> layers;  ///< of the first model, in order
  std::vector<Track> tracks;          ///< in the order in which they were first seen
  std::vector<records::Step> probes;  ///< looks at the first optimiser's steps
  // By epoch where there are epochs, else by block of steps; NaN where a value is missing.
  std::vector<double> losses, accuracies, val_losses, val_accuracies;
  bool by_epoch = false;
  std::vector<double> step_losses;
  double largest_gradient =
      NAN;  ///< norm of a parameter's gradient over all looks, those the record had no room for too

  bool finite() const;  ///< all of `losses` are
  double first_loss() const;
  double last_loss() const;  ///< mean of the last tenth
  double best_loss() const;
  /// What a constant prediction reaches: ln C, the entropy of the labels, the variance of the targets; NaN where
  /// unknown.
  double constant_loss() const;
  /// ln C, what a network that knows nothing has as its first loss; NaN where the loss is not that of classes.
  double uniform_loss() const;
  /// The first loss of classes by itself, without what a program adds to it; NaN where it was not seen.
  double first_class_loss() const;
  /// Share of accuracy of the most frequent class; NaN where unknown.
  double majority() const;
  bool hidden_is(const std::string& function) const;  ///< some hidden layer has this activation
  bool learned() const;  ///< clearly better than a constant prediction, by loss or accuracy
};

/// Refers to the record, which must live as long.
Run digest(const records::Record& record);

/// The first step whose losses differ, from 1, or 0 where none does: two runs with the same seed are the same until
/// then.
int64_t first_difference(const Run& a, const Run& b);

}  // namespace netmend::diagnosis
