// Whether output, loss, targets and metric belong together: a table of what fits, looked up. Counted among the exact
// checks; where a pair works and is only unusual, the level says so.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnosis/rules.h"
#include "findings/phrases.h"

namespace netmend::diagnosis {
namespace {

using findings::Certainty;
using findings::Level;
using findings::plain;
using records::Line;

bool of_classes(const Run& run) {
  return run.loss == "categorical_crossentropy" || run.loss == "sparse_categorical_crossentropy";
}
bool of_numbers(const Run& run) {
  return run.loss.find("error") != std::string::npos || run.loss == "huber" || run.loss == "logcosh" ||
         run.loss == "log_cosh";
}
bool squashes(const std::string& function) {
  return function == "sigmoid" || function == "softmax" || function == "hard_sigmoid";
}

Alarm alarm_of(const char* kind, std::string what, Level level, double likelihood, std::string evidence,
               const Run& run) {
  Alarm alarm{.kind = kind,
              .what = std::move(what),
              .level = level,
              .certainty = Certainty::kConfirmed,
              .likelihood = likelihood};
  alarm.brief = alarm.what;
  alarm.evidence = std::move(evidence);
  alarm.source = run.keras ? run.source_optimizer : run.source_loss;
  return alarm;
}

struct Reach {
  double low, high;
};
Reach reach_of(const std::string& function) {
  if (squashes(function)) return {0, 1};
  if (function == "tanh" || function == "softsign") return {-1, 1};
  if (function == "relu" || function == "softplus" || function == "exponential") return {0, INFINITY};
  return {-INFINITY, INFINITY};
}

/// Targets that the last function cannot give, however the weights are.
void reachable(const Scope& s) {
  const Run& run = s.run;
  if (!run.targets.seen || run.last.empty() || (!of_numbers(run) && run.task != Task::kRegression)) return;
  const Reach reach = reach_of(run.last);
  const double slack = 0.01 * std::max(1e-12, run.targets.max - run.targets.min);
  if (run.targets.min >= reach.low - slack && run.targets.max <= reach.high + slack) return;
  const bool wide = run.targets.max > reach.high + 0.5 || run.targets.min < reach.low - slack;
  s.out.push_back(
      alarm_of("output-activation", fmt::format("{} cannot reach the targets", run.last),
               wide ? Level::kSerious : Level::kMinor, 0.93,
               fmt::format("Outputs of {} lie between {} and {}, targets between {} and {}.", run.last,
                           plain(reach.low), plain(reach.high), plain(run.targets.min), plain(run.targets.max)),
               run));
}

void one_softmax(const Scope& s) {
  const Run& run = s.run;
  if (run.last != "softmax" || run.outputs != 1) return;
  const bool classes = run.task == Task::kMulticlass;  // then the number of outputs is the first thing to mend
  s.out.push_back(alarm_of("output-activation", "softmax over a single unit", Level::kSerious, classes ? 0.8 : 0.97,
                           "Softmax over one unit is 1 for every input, so the network cannot learn anything.", run));
}

void pair_of_classes(const Scope& s) {
  const Run& run = s.run;
  if (!of_classes(run) || run.last.empty() || run.outputs == 1) return;
  const Line loss = run.record->last("loss");
  const bool nll = loss.text("type") == "nll_loss";
  if (nll) {
    if (loss.flag("negative") || (loss.has("all_rows_sum_to_one") && !loss.flag("all_rows_sum_to_one")))
      s.out.push_back(alarm_of(
          "output-activation", "nll_loss needs log-probabilities", Level::kSerious, 0.95,
          fmt::format("nll_loss expects the output of log_softmax, but the network ends in {}.", run.last), run));
    return;
  }
  if (run.from_logits) {
    if (run.last == "softmax" || loss.flag("all_rows_sum_to_one"))
      s.out.push_back(
          alarm_of("output-activation", "softmax before a loss that applies softmax itself", Level::kSerious, 0.97,
                   fmt::format("The loss gets probabilities, not logits: with {} classes it cannot fall below {}.",
                               run.outputs, plain(std::log(std::exp(1.0) + double(run.outputs) - 1) - 1)),
                   run));
    else if (run.last == "relu" || run.last == "sigmoid" || run.last == "tanh")
      s.out.push_back(alarm_of("output-activation", fmt::format("{} before softmax", run.last), Level::kMinor, 0.7,
                               fmt::format("The scores pass through {} before softmax, which limits them.", run.last),
                               run));
    return;
  }
  if (run.last != "softmax" && run.last != "log_softmax")
    s.out.push_back(alarm_of(
        "output-activation", fmt::format("{} with {}", run.last, run.loss), Level::kSerious, 0.92,
        fmt::format("{} expects probabilities that add up to 1, which {} does not produce.", run.loss, run.last), run));
}

void pair_of_two(const Scope& s) {
  const Run& run = s.run;
  if (run.loss != "binary_crossentropy" || run.last.empty()) return;
  const Line loss = run.record->last("loss");
  if (run.from_logits) {
    if (run.last == "sigmoid" || (run.last == "softmax" && run.outputs > 1) ||
        (loss.flag("all_outputs_in_unit") && loss.whole("calls") >= 8 && run.last != "linear"))
      s.out.push_back(alarm_of("output-activation",
                               (run.last == "sigmoid" || run.last == "softmax" ? run.last : "outputs between 0 and 1") +
                                   " before a loss that applies sigmoid itself",
                               Level::kSerious, 0.95,
                               "The loss gets values between 0 and 1, not logits, so it cannot fall below 0.3133.",
                               run));
    return;
  }
  const bool fits = run.last == "sigmoid" || run.last == "hard_sigmoid" || run.last == "softmax" || run.last == "clamp";
  if (!fits)
    s.out.push_back(alarm_of(
        "output-activation", fmt::format("{} with {}", run.last, run.loss), Level::kSerious, 0.94,
        fmt::format("{} expects a probability between 0 and 1; {} can produce other values.", run.loss, run.last),
        run));
  else if (run.targets.one_hot && run.outputs >= 2 && run.last == "sigmoid")
    s.out.push_back(
        alarm_of("output-activation", "sigmoid for classes that exclude each other", Level::kMinor, 0.45,
                 "Targets are one-hot: exactly one class is right. Softmax with categorical cross-entropy expresses "
                 "that; sigmoid with binary cross-entropy treats every class separately.",
                 run));
}

/// Classes told by the distance of numbers.
void numbers_for_classes(const Scope& s) {
  const Run& run = s.run;
  if (!of_numbers(run) || !run.targets.seen) return;
  const bool several = run.task == Task::kMultilabel;
  const bool classes = run.targets.one_hot || several || run.task == Task::kBinary || run.task == Task::kMulticlass;
  if (!classes) return;
  s.out.push_back(
      alarm_of("wrong-loss", fmt::format("{} for classes", run.loss), Level::kMinor, 0.66,
               fmt::format("The targets are {}, and the loss is {}: cross-entropy has steeper gradients where a "
                           "prediction is wrong.",
                           several               ? "rows of yes or no"
                           : run.targets.one_hot ? "one-hot rows"
                                                 : "class labels",
                           run.loss),
               run));
  if (!squashes(run.last) && !run.last.empty() && run.last != "tanh")
    s.out.push_back(alarm_of(
        "output-activation", fmt::format("{} for classes", run.last), Level::kMinor, 0.62,
        fmt::format("The targets are classes, but the outputs of the last activation, {}, are not limited to 0 to 1.",
                    run.last),
        run));
}

void softmax_for_several(const Scope& s) {
  const Run& run = s.run;
  if (run.task != Task::kMultilabel || run.last != "softmax" || run.outputs < 2 || run.targets.one_hot) return;
  s.out.push_back(alarm_of("output-activation", "softmax for labels that do not exclude each other", Level::kSerious,
                           0.9, "Several labels of an input can be right, but the outputs of softmax add up to 1.",
                           run));
}

void loss_for_targets(const Scope& s) {
  const Run& run = s.run;
  if (!run.targets.seen) return;
  const bool has_zero =
      (run.targets.counts.count("0") && run.targets.counts.at("0") > 0) || run.targets.min == 0 || run.targets.max == 0;
  if (run.loss == "mean_absolute_percentage_error" && has_zero)
    s.out.push_back(alarm_of("wrong-loss", "a percentage error of targets that are 0", Level::kSerious, 0.9,
                             "This loss divides by the target, and some targets are 0.", run));
  const bool cross = run.loss.find("crossentropy") != std::string::npos;
  if (run.loss == "categorical_crossentropy" && run.outputs == 1)
    s.out.push_back(alarm_of("wrong-loss", "categorical cross-entropy of a single output", Level::kSerious, 0.9,
                             "With one output this loss is 0 or constant, so there is nothing to minimise.", run));
  if (cross && run.loss != "sparse_categorical_crossentropy" && !run.targets.one_hot &&
      (run.targets.max > 1 || run.targets.min < 0)) {
    if (!run.targets.whole || run.task == Task::kRegression)
      s.out.push_back(alarm_of("wrong-loss", fmt::format("{} for numbers", run.loss), Level::kSerious, 0.88,
                               fmt::format("Targets lie between {} and {}; this loss expects 0 to 1.",
                                           plain(run.targets.min), plain(run.targets.max)),
                               run));
    else if (run.task == Task::kMulticlass && run.outputs == 1)
      s.out.push_back(alarm_of("wrong-loss", fmt::format("{} for {} classes", run.loss, run.targets.classes),
                               Level::kSerious, 0.9,
                               fmt::format("Labels are the numbers {} to {}; this loss expects 0 or 1.",
                                           plain(run.targets.min), plain(run.targets.max)),
                               run));
    else
      s.out.push_back(alarm_of("label-encoding", "labels are not 0 or 1", Level::kSerious, 0.9,
                               fmt::format("Labels lie between {} and {}; {} expects 0 to 1.", plain(run.targets.min),
                                           plain(run.targets.max), run.loss),
                               run));
  }
  if (run.loss == "sparse_categorical_crossentropy" && run.keras && !run.targets.whole)
    s.out.push_back(alarm_of("wrong-loss", "a loss of classes for numbers", Level::kSerious, 0.9,
                             "Targets are real numbers, but this loss is for classes.", run));
  if (run.loss == "categorical_crossentropy" && run.targets.width == 1 && run.outputs > 1 && run.targets.whole &&
      run.keras)
    s.out.push_back(alarm_of(
        "label-encoding", "class numbers where one-hot rows are expected", Level::kSerious, 0.93,
        "categorical_crossentropy expects one row per input with a 1 at its class, but the labels are class numbers.",
        run));
}

void width_for_targets(const Scope& s) {
  const Run& run = s.run;
  if (!run.targets.seen || run.outputs < 1) return;
  const bool cross = run.loss.find("crossentropy") != std::string::npos;
  if (run.task == Task::kMulticlass && run.outputs == 1 && cross)
    s.out.push_back(alarm_of("wrong-output-size", fmt::format("1 output for {} classes", run.targets.classes),
                             Level::kSerious, 0.95,
                             fmt::format("There are {} classes but only one output.", run.targets.classes), run));
  else if (run.loss == "sparse_categorical_crossentropy" && run.targets.whole &&
           run.targets.max >= double(run.outputs) && run.keras)
    s.out.push_back(alarm_of("wrong-output-size",
                             fmt::format("{} outputs, labels up to {}", run.outputs, plain(run.targets.max)),
                             Level::kSerious, 0.95, "A label must be smaller than the number of outputs.", run));
  else if (run.keras && of_numbers(run) && run.outputs > 1 && run.targets.width == 1 && run.task == Task::kRegression &&
           s.run.record->first("model").list("layers").size() > 0 && run.layers.back().text("role") == "linear")
    s.out.push_back(
        alarm_of("wrong-output-size", fmt::format("{} outputs for one target", run.outputs), Level::kSerious, 0.85,
                 fmt::format("Each of the {} outputs is compared with the same number.", run.outputs), run));
  else if (!run.keras && run.loss == "sparse_categorical_crossentropy" && run.targets.classes >= 2 && run.steps >= 64 &&
           run.outputs > run.targets.classes && run.outputs >= 2 * run.targets.classes)
    s.out.push_back(alarm_of(
        "wrong-output-size", fmt::format("{} outputs for {} classes", run.outputs, run.targets.classes), Level::kMinor,
        0.5, fmt::format("Only {} of {} outputs ever occurred as a label.", run.targets.classes, run.outputs), run));
}

void shapes(const Scope& s) {
  for (const Line& loss : s.run.record->of("loss"))
    if (loss.flag("broadcast")) {
      s.out.push_back(alarm_of("shape-broadcast", "", Level::kSerious, 0.97,
                               fmt::format("Outputs have shape {}, targets {}.", shape_text(loss.wholes("shape")),
                                           shape_text(loss.wholes("target_shape"))),
                               s.run));
      s.out.back().brief =
          fmt::format("{} against {}", shape_text(loss.wholes("shape")), shape_text(loss.wholes("target_shape")));
      return;
    }
}

void metric_for_task(const Scope& s) {
  for (const std::string& metric : s.run.metrics) {
    if (lower(metric).find("acc") == std::string::npos) continue;
    const bool numbers = s.run.task == Task::kRegression && s.run.targets.seen;
    // The class Accuracy compares outputs and labels for equality, which probabilities never reach.
    const bool equal = metric == "Accuracy";
    if (!numbers && !equal) continue;
    s.out.push_back(alarm_of("metric-mismatch", numbers ? "accuracy for numbers" : "Accuracy compares for equality",
                             Level::kMinor, numbers ? 0.35 : 0.5,
                             numbers ? "The targets are real numbers, and a prediction hardly ever equals its target "
                                       "exactly."
                                     : "The metric counts outputs that equal the label; probabilities do not.",
                             s.run));
    return;
  }
}

/// A single ReLU unit as output stops at 0 and does not come back.
void relu_output(const Scope& s) {
  const Run& run = s.run;
  if (run.last != "relu" || !of_numbers(run) || !run.targets.seen || run.targets.min < 0) return;
  bool constant = false;
  if (!run.probes.empty())
    constant = run.probes.back().facts.flag("same_outputs") || run.probes.back().facts.flag("near_outputs");
  constant = constant || run.record->last("loss").flag("all_outputs_equal");
  s.out.push_back(
      alarm_of("output-activation", "ReLU as output of a regression", constant ? Level::kSerious : Level::kMinor,
               constant ? 0.9 : 0.5,
               constant ? "All outputs are equal or nearly so: where ReLU gives 0, no gradient flows back."
                        : "Where ReLU gives 0, no gradient flows back; a regression needs no activation at its end.",
               run));
}

constexpr Rule kRules[] = {
    {"exact", "softmax-of-one", "constant output", "last activation, width", "exact", "output-activation", "NeuraLint",
     one_softmax},
    {"exact", "reachable", "targets beyond the outputs", "range of targets, last activation", "exact",
     "output-activation", "DeepDiagnosis", reachable},
    {"exact", "several-labels", "softmax for several labels", "rows of targets, last activation", "exact",
     "output-activation", "UMLAUT", softmax_for_several},
    {"exact", "classes-pair", "loss of classes and last activation", "last activation, loss, rows of outputs", "exact",
     "output-activation", "UMLAUT", pair_of_classes},
    {"exact", "binary-pair", "binary loss and last activation", "last activation, loss", "exact", "output-activation",
     "NeuraLint", pair_of_two},
    {"exact", "numbers-for-classes", "squared error for classes", "loss, targets", "exact", "wrong-loss", "AutoTrainer",
     numbers_for_classes},
    {"exact", "loss-targets", "loss and targets", "loss, range of targets", "exact", "wrong-loss", "DeepDiagnosis",
     loss_for_targets},
    {"exact", "width", "number of outputs", "outputs, classes", "exact", "wrong-output-size", "AutoTrainer",
     width_for_targets},
    {"exact", "shapes", "silent broadcasting", "shapes at the loss", "exact", "shape-broadcast", "own", shapes},
    {"exact", "metric", "metric and task", "metrics, targets", "exact", "metric-mismatch", "own", metric_for_task},
    {"exact", "relu-output", "ReLU at the end of a regression", "last activation", "exact", "output-activation",
     "DeepDiagnosis", relu_output},
};

}  // namespace

std::span<const Rule> output_rules() { return kRules; }

}  // namespace netmend::diagnosis
