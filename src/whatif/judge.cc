#include "whatif/judge.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "whatif/row_loops.h"

namespace netmend::whatif {

using observers::PredictionSettings;
using observers::Task;

model::ValueId answers_of(const PredictionSettings& settings) {
  return settings.task == Task::kNumber ? settings.head.output : settings.head.logits;
}

Truth truth_of(const PredictionSettings& settings, const at::Tensor& labels, int64_t count) {
  Truth truth;
  at::Tensor own = labels.narrow(0, 0, count);
  if (!settings.by_class()) {
    truth.numbers = own.to(at::kDouble).reshape({count, settings.outputs}).contiguous();
    return truth;
  }
  at::Tensor numbers = own.to(at::kLong).contiguous();
  truth.classes.assign(numbers.data_ptr<int64_t>(), numbers.data_ptr<int64_t>() + count);
  for (int64_t label : truth.classes)
    if (label < 0 || label >= int64_t(settings.classes.size()))
      fail("{}: an input has label {}, the model has {} classes", settings.data, label, settings.classes.size());
  return truth;
}

namespace {

constexpr float kNoNumber = std::numeric_limits<float>::infinity();

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double surprise(double probability) { return -std::log(std::max(probability, 1e-12)); }

struct Form {
  Task task;
  int64_t width;
  bool probabilities;
  double threshold;  ///< of column 1 of two, of the only column, or of each label
  double tolerance;
  bool plain;  ///< the arg max is the prediction
};

Form form_of(const PredictionSettings& settings) {
  const bool turned = settings.by_class() && settings.positive == 0;
  Form form{settings.task,
            settings.outputs,
            settings.head.without_logits(),
            turned ? 1 - settings.threshold : settings.threshold,
            settings.tolerance,
            true};
  form.plain = settings.task == Task::kClasses && (settings.outputs != 2 || settings.threshold == 0.5);
  return form;
}

/// The largest column, and how far behind the next one is.
struct Best {
  int32_t column = 0;
  float value = 0, margin = 0, largest = 0;
};
Best best_of(const float* row, int64_t width) {
  Best best{0, row[0], kNoNumber, std::abs(row[0])};
  for (int64_t c = 1; c < width; ++c) {
    best.largest = std::max(best.largest, std::abs(row[c]));
    if (row[c] > best.value)
      best.margin = row[c] - best.value, best.value = row[c], best.column = int32_t(c);
    else
      best.margin = std::min(best.margin, best.value - row[c]);
  }
  return best;
}

bool all_finite(const float* row, int64_t width) {
  float sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += row[c] * 0;
  return sum == 0;
}

Judgement judge_classes(const Form& form, const float* row, int64_t label, const Best& best) {
  Judgement out;
  out.predicted = best.column;
  if (form.probabilities) {
    out.loss = float(surprise(row[label]));
  } else {
    float sum = 0;
    for (int64_t c = 0; c < form.width; ++c) sum += std::exp(row[c] - best.value);
    out.loss = std::log(sum) + (best.value - row[label]);
  }
  if (!form.plain) {
    double p = form.probabilities ? row[1] : 1 / (1 + std::exp(double(row[0]) - row[1]));
    out.predicted = p > form.threshold;
  }
  out.right = out.predicted == label;
  return out;
}

/// Classes by the largest of several logits, sixteen rows at a time; the last ones are filled up.
void judge_logits(const Form& form, const float* row, const Truth& truth, int64_t count, int64_t inputs,
                  Judgement* judged, double near, std::vector<int64_t>* close) {
  std::vector<float> last;
  for (int64_t first = 0; first < count; first += kRowsAtOnce) {
    const int64_t some = std::min(kRowsAtOnce, count - first);
    const float* from = row + first * form.width;
    if (some < kRowsAtOnce) {
      last.assign(size_t(kRowsAtOnce * form.width), 0.0f);
      std::copy_n(from, some * form.width, last.data());
      from = last.data();
    }
    RowRatings ratings;
    rate_rows(from, form.width, ratings);
    for (int64_t l = 0; l < some; ++l) {
      const int64_t r = first + l, label = truth.classes[size_t(r % inputs)];
      if (ratings.finite[l] != 0) {
        judged[r] = {kNoNumber, -1, false};
        continue;
      }
      judged[r] = {std::log(ratings.sum[l]) + (ratings.value[l] - from[l * form.width + label]), ratings.best[l],
                   ratings.best[l] == label};
      if (close && ratings.margin[l] <= near * double(ratings.largest[l])) close->push_back(r);
    }
  }
}

double log_odds(double p) { return std::log(p) - std::log1p(-p); }

/// So near to the decision threshold that another order of additions might change the prediction.
bool near_threshold(const Form& form, double value, double near) {
  if (form.task == Task::kNumber) return form.tolerance >= 0;
  const double turn = form.probabilities ? form.threshold : log_odds(form.threshold);
  return std::abs(value - turn) <= near * std::max(1.0, std::abs(value));
}

struct Yes {
  bool called;
  double loss;
};
Yes judge_one(const Form& form, double value, bool truth) {
  double p = form.probabilities ? value : 1 / (1 + std::exp(-value));
  return {p > form.threshold, form.probabilities ? surprise(truth ? p : 1 - p) : softplus(truth ? -value : value)};
}

Judgement judge_labels(const Form& form, const float* row, const double* truth) {
  Judgement out;
  out.right = true;
  double loss = 0;
  for (int64_t c = 0; c < form.width; ++c) {
    Yes yes = judge_one(form, row[c], truth[c] > 0.5);
    loss += yes.loss / double(form.width);
    out.right = out.right && yes.called == (truth[c] > 0.5);
  }
  out.loss = float(loss);
  return out;
}

Judgement judge_number(const Form& form, const float* row, const double* truth) {
  double squared = 0, farthest = 0;
  for (int64_t c = 0; c < form.width; ++c) {
    double error = row[c] - truth[c];
    squared += error * error / double(form.width);
    farthest = std::max(farthest, std::abs(error));
  }
  return {float(squared), -1, form.tolerance >= 0 && farthest <= form.tolerance};
}

}  // namespace

void judge(const PredictionSettings& settings, const at::Tensor& answers, const Truth& truth, int64_t inputs,
           Judgement* rows, double near, std::vector<int64_t>* close) {
  at::Tensor columns = observers::as_columns(answers).to(at::kCPU, at::kFloat).contiguous();
  check(columns.dim() == 2 && columns.size(1) == settings.outputs, "predictions keep their shape");
  const Form form = form_of(settings);
  const float* row = columns.data_ptr<float>();
  if (form.plain && !form.probabilities && form.width > 1 && form.width <= kMostColumns)
    return judge_logits(form, row, truth, columns.size(0), inputs, rows, near, close);
  int64_t input = 0;
  for (int64_t r = 0; r < columns.size(0); ++r, row += form.width, input = input + 1 == inputs ? 0 : input + 1) {
    if (!all_finite(row, form.width)) {
      rows[r] = {kNoNumber, -1, false};
      continue;
    }
    if (form.task == Task::kClasses) {
      Best best = best_of(row, form.width);
      rows[r] = judge_classes(form, row, truth.classes[size_t(input)], best);
      const double margin = form.plain ? best.margin : std::abs(double(row[1]) - row[0] - log_odds(form.threshold));
      if (close && margin <= near * std::max<double>(best.largest, form.plain ? 0 : 1)) close->push_back(r);
    } else if (form.task == Task::kBinary) {
      int64_t label = truth.classes[size_t(input)];
      Yes yes = judge_one(form, row[0], label == 1);
      rows[r] = {float(yes.loss), int32_t(yes.called), yes.called == (label == 1)};
      if (close && near_threshold(form, row[0], near)) close->push_back(r);
    } else {
      const double* target = truth.numbers.data_ptr<double>() + input * form.width;
      rows[r] = form.task == Task::kLabels ? judge_labels(form, row, target) : judge_number(form, row, target);
      if (close && std::any_of(row, row + form.width, [&](float x) { return near_threshold(form, x, near); }))
        close->push_back(r);
    }
  }
}

}  // namespace netmend::whatif
