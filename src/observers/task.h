// How predictions are judged: the task, what the user says about it, and what was inferred.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/head.h"

namespace netmend::observers {

/// What a prediction is.
enum class Task {
  kClasses,  ///< the largest of several outputs
  kBinary,   ///< one output: class 1 above the threshold
  kLabels,   ///< one yes or no an output
  kNumber,   ///< the output itself
  kNone,     ///< no labels
};
std::string task_name(Task task);

/// What the user says about the task; the rest is inferred.
struct TaskOverrides {
  std::string kind;         ///< classes, binary, labels, number, none, or ""
  std::string output_kind;  ///< logits, probabilities, or ""
  std::string metric;       ///< one of metric_names(), or ""
  std::string positive;     ///< name or number of the class that f1 and the threshold are about
  double threshold = 0.5;   ///< of the positive class, and of each label
  double tolerance = -1;    ///< a number this near to the truth is right; below 0: numbers are never right or wrong
};
/// accuracy, balanced_accuracy, f1, auc, log_loss, mae, rmse
const std::vector<std::string>& metric_names();
/// Smaller is better.
bool is_error(const std::string& metric);

struct PredictionSettings {
  Task task = Task::kClasses;
  executor::Head head;
  int64_t outputs = 0;               ///< width of the output
  std::vector<std::string> classes;  ///< names of its columns
  std::string data;                  ///< spec, for messages
  std::string metric;                ///< the one that counts; "" without labels
  int64_t positive = 1;              ///< class that f1 and the threshold are about, where there are two
  double threshold = 0.5, tolerance = -1;
  /// Predictions are right or wrong, not only near or far.
  bool has_right_and_wrong() const { return task != Task::kNone && (task != Task::kNumber || tolerance >= 0); }
  bool by_class() const { return task == Task::kClasses || task == Task::kBinary; }
};

}  // namespace netmend::observers
