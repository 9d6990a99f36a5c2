#include "observers/predictions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "observers/metrics.h"
#include "stream/pass.h"

namespace netmend::observers {
namespace {

using dataset::LabelKind;
using executor::OutputKind;

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double surprise(double probability) { return -std::log(std::max(probability, 1e-12)); }

}  // namespace

at::Tensor as_columns(const at::Tensor& output) {
  at::Tensor flat = output.dim() == 1 ? output.unsqueeze(1) : output;
  while (flat.dim() > 2 && flat.size(-1) == 1) flat = flat.squeeze(-1);
  while (flat.dim() > 2 && flat.size(1) == 1) flat = flat.squeeze(1);
  return flat;
}

bool look_like_probabilities(const at::Tensor& columns) {
  if (columns.size(1) < 2) return columns.min().item<double>() >= 0 && columns.max().item<double>() <= 1;
  return columns.min().item<double>() >= 0 && ((columns.sum(1) - 1).abs() < 1e-3).all().item<bool>();
}

namespace {

const std::vector<std::string> kTaskNames = {"classes", "binary", "labels", "number", "none"};

Task choose_task(const std::string& kind, LabelKind labels, int64_t outputs) {
  Task natural = labels == LabelKind::kNone     ? Task::kNone
                 : labels == LabelKind::kNumber ? Task::kNumber
                 : labels == LabelKind::kMulti  ? Task::kLabels
                 : outputs == 1                 ? Task::kBinary
                                                : Task::kClasses;
  auto place = std::find(kTaskNames.begin(), kTaskNames.end(), kind);
  if (kind.empty() || labels == LabelKind::kNone) return natural;
  if (place == kTaskNames.end())
    fail("kind `{}` is unknown{}: choose from {}", kind, did_you_mean(kind, kTaskNames), join(kTaskNames, ", "));
  auto asked = Task(place - kTaskNames.begin());
  // Two outputs for two classes are as good as one.
  if (asked == Task::kBinary && natural == Task::kClasses && outputs == 2) return natural;
  bool counts_as_number = asked == Task::kNumber && labels == LabelKind::kClass && outputs == 1;
  if (asked != natural && asked != Task::kNone && !counts_as_number)
    throw InputError(fmt::format("kind = \"{}\" does not fit: the labels and {} output column{} make it {}", kind,
                                 outputs, outputs == 1 ? "" : "s", task_name(natural)),
                     "Leave kind out to take what fits, or give the data kind=class, number or multi.");
  return asked;
}

void choose_metric(PredictionSettings& settings, const std::string& wish) {
  if (settings.task == Task::kNone) return;
  const bool number = settings.task == Task::kNumber;
  settings.metric = wish.empty() ? number ? "mae" : "accuracy" : wish;
  const auto& names = metric_names();
  if (std::find(names.begin(), names.end(), settings.metric) == names.end())
    fail("metric `{}` is unknown{}: choose from {}", wish, did_you_mean(wish, names), join(names, ", "));
  bool of_numbers = settings.metric == "mae" || settings.metric == "rmse";
  bool fits = number ? of_numbers || (settings.metric == "accuracy" && settings.tolerance >= 0)
                     : !of_numbers && (settings.metric != "balanced_accuracy" || settings.by_class());
  if (!fits)
    throw InputError(fmt::format("metric {} does not fit the task {}", settings.metric, task_name(settings.task)),
                     number ? "Choose from mae and rmse, or set goal.tolerance, the largest error that still counts as "
                              "correct, for accuracy."
                            : "Choose from accuracy, f1, auc and log_loss.");
}

int64_t find_positive(const PredictionSettings& settings, const std::string& wish) {
  if (wish.empty()) return 1;
  for (size_t c = 0; c < settings.classes.size(); ++c)
    if (settings.classes[c] == wish) return int64_t(c);
  int64_t number = -1;
  if (parse_int(wish, number) && number >= 0 && number < int64_t(settings.classes.size())) return number;
  fail("positive = {}: there is no such class{}; the classes are {}", wish, did_you_mean(wish, settings.classes),
       join(settings.classes, ", "));
}

void name_classes(PredictionSettings& settings, const dataset::Info& data, const std::string& output) {
  int64_t classes = settings.task == Task::kBinary ? 2 : settings.outputs;
  if (settings.by_class() && int64_t(data.classes.size()) > classes)
    throw InputError(
        fmt::format("{} has {} classes, output `{}` has {}", data.spec, data.classes.size(), output, classes),
        int64_t(data.classes.size()) == classes + 1
            ? "Do the labels start at 1? Then add first=1 to the data. Or --output NAME chooses another output."
            : "Is it the right output? --output NAME chooses another.");
  if (settings.task == Task::kNumber) return;
  for (int64_t c = 0; c < classes; ++c)
    settings.classes.push_back(c < int64_t(data.classes.size()) ? data.classes[size_t(c)] : std::to_string(c));
}

/// Every pair of label and prediction is counted, by several states at once: a small file may have many columns.
void require_countable(const PredictionSettings& settings, const std::string& output) {
  constexpr size_t kMostClasses = 8192, kStates = 4;
  const size_t classes = settings.classes.size();
  const double bytes = double(classes) * double(classes) * sizeof(int64_t) * kStates;
  const auto allowed = double(executor::memory_budget());
  const char* hint = "--output NAME chooses another output, or any value inside the model.";
  if (!settings.by_class()) return;
  if (classes > kMostClasses)
    throw InputError(fmt::format("output `{}` has {} columns: netmend counts predictions for up to {} classes", output,
                                 with_commas(int64_t(classes)), with_commas(int64_t(kMostClasses))),
                     hint);
  if (bytes > allowed)
    throw InputError(fmt::format("output `{}` has {} columns: counting predictions by class takes {} of memory, {} are "
                                 "allowed",
                                 output, with_commas(int64_t(classes)), bytes_text(bytes), bytes_text(allowed)),
                     hint);
}

}  // namespace

std::string task_name(Task task) { return kTaskNames[size_t(task)]; }

PredictionSettings infer_task(const model::Graph& graph, const executor::Head& head, const dataset::Info& data,
                              const dataset::Batch& batch, const at::Tensor& output, const TaskOverrides& overrides) {
  at::Tensor columns = as_columns(output);
  const std::string& name = graph.values[size_t(head.output)].name;
  if (columns.dim() != 2 || columns.size(0) != batch.count())
    throw InputError(fmt::format("output `{}` has the shape {}: one prediction per input is expected", name,
                                 shape_text({output.sizes().data(), output.sizes().size()})),
                     "--output NAME chooses another output, or any value inside the model.");
  PredictionSettings settings;
  settings.head = head;
  settings.outputs = columns.size(1);
  settings.data = data.spec;
  settings.tolerance = overrides.tolerance;
  settings.threshold = overrides.threshold;
  settings.task = choose_task(overrides.kind, data.labels, settings.outputs);
  if ((settings.task == Task::kLabels || settings.task == Task::kNumber) && data.label_width != settings.outputs)
    fail("{} has {} {} per input, output `{}` has {} columns", data.spec, data.label_width,
         settings.task == Task::kNumber ? "numbers" : "labels", name, settings.outputs);
  name_classes(settings, data, name);
  require_countable(settings, name);
  if (settings.by_class() && settings.classes.size() == 2)
    settings.positive = find_positive(settings, overrides.positive);
  choose_metric(settings, overrides.metric);
  if (settings.task != Task::kNumber && head.output_kind == OutputKind::kLogits && overrides.output_kind != "logits" &&
      (overrides.output_kind == "probabilities" ||
       (settings.task != Task::kLabels && look_like_probabilities(columns))))
    settings.head.output_kind = OutputKind::kProbabilities;
  return settings;
}

Predictions::Predictions(PredictionSettings settings, bool rows) : settings_(std::move(settings)), rows_(rows) {}

std::vector<stream::Tap> Predictions::taps() const {
  return {{settings_.task == Task::kNumber ? settings_.head.output : settings_.head.logits, 0}};
}

std::unique_ptr<stream::State> Predictions::fresh() const {
  return std::make_unique<PredictionState>(settings_, rows_);
}

PredictionState::PredictionState(const PredictionSettings& settings, bool rows)
    : settings_(settings), keep_rows_(rows) {
  if (settings.by_class()) confusion.resize(settings.classes.size() * settings.classes.size());
  if (settings.by_class()) label_counts.resize(settings.classes.size());
  if (settings.task == Task::kLabels) found_wrong_missed.resize(size_t(settings.outputs));
  if (settings.task == Task::kLabels)
    scores.resize(size_t(settings.outputs));
  else if (settings.by_class() && settings.classes.size() == 2)
    scores.resize(1);
  else if (settings.task == Task::kClasses && settings.metric == "auc")
    scores.resize(settings.classes.size());
}

void PredictionState::observe(const stream::View& view) {
  at::Tensor raw = view.value(settings_.task == Task::kNumber ? settings_.head.output : settings_.head.logits);
  at::Tensor columns = as_columns(raw.to(at::kCPU, at::kDouble)).contiguous();
  judge(columns, view.batch.labels, view.batch.samples);
}

namespace {

struct Answer {
  double predicted = 0, confidence = 0, loss = 0;
};

double log_odds(double probability) { return std::log(probability) - std::log1p(-probability); }

int64_t largest(const double* row, int64_t width) { return std::max_element(row, row + width) - row; }

Answer judge_classes(const double* row, int64_t width, int64_t label, bool probabilities) {
  int64_t best = largest(row, width);
  if (probabilities) return {double(best), row[best], label < 0 ? 0 : surprise(row[label])};
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += std::exp(row[c] - row[best]);
  return {double(best), 1 / sum, label < 0 ? 0 : std::log(sum) + (row[best] - row[label])};
}

Answer judge_binary(double value, int64_t label, bool probability, double threshold) {
  double p = probability ? value : sigmoid(value);
  double loss = probability ? surprise(label == 1 ? p : 1 - p) : softplus(label == 1 ? -value : value);
  return {double(p > threshold), std::max(p, 1 - p), loss};
}

/// How much class `c` is preferred to all others together.
double score_of(const double* row, int64_t width, int64_t c, bool probabilities) {
  if (probabilities) return log_odds(row[c]);
  if (width == 2) return row[c] - row[1 - c];
  double most = -INFINITY, sum = 0;
  for (int64_t other = 0; other < width; ++other)
    if (other != c) most = std::max(most, row[other]);
  for (int64_t other = 0; other < width; ++other)
    if (other != c) sum += std::exp(row[other] - most);
  return row[c] - most - std::log(sum);
}

}  // namespace

void PredictionState::add_loss(double value) { loss += value, loss_squares += value * value; }

SampleRow PredictionState::judge_class(const double* values, int64_t label) {
  const auto classes = int64_t(settings_.classes.size());
  const bool probability = settings_.head.without_logits(), one = settings_.task == Task::kBinary;
  const bool positive_is_one = settings_.positive == 1;
  Answer answer =
      one ? judge_binary(values[0], label, probability, positive_is_one ? settings_.threshold : 1 - settings_.threshold)
          : judge_classes(values, classes, label, probability);
  if (classes == 2) {
    double score = one ? (probability ? log_odds(values[0]) : values[0]) * (positive_is_one ? 1 : -1)
                       : score_of(values, 2, settings_.positive, probability);
    scores[0].add(score, label == settings_.positive);
    if (!one && settings_.threshold != 0.5)
      answer.predicted = double(sigmoid(score) > settings_.threshold ? settings_.positive : 1 - settings_.positive);
  } else {
    for (size_t c = 0; c < scores.size(); ++c)
      scores[c].add(score_of(values, classes, int64_t(c), probability), label == int64_t(c));
  }
  ++confusion[size_t(label * classes + int64_t(answer.predicted))];
  bool right = int64_t(answer.predicted) == label;
  correct += right;
  add_loss(answer.loss);
  return {0, double(label), answer.predicted, float(answer.confidence), float(answer.loss), right};
}

SampleRow PredictionState::judge_labels(const double* values, const double* targets) {
  const bool probability = settings_.head.without_logits();
  double total = 0, set = 0, called = 0, surest = 1;
  bool right = true;
  for (int64_t c = 0; c < settings_.outputs; ++c) {
    bool truth = targets[c] > 0.5;
    Answer answer = judge_binary(values[c], truth, probability, settings_.threshold);
    bool yes = answer.predicted == 1;
    total += answer.loss / double(settings_.outputs);
    set += truth, called += yes;
    surest = std::min(surest, answer.confidence);
    right = right && yes == truth;
    auto& [found, wrong, missed] = found_wrong_missed[size_t(c)];
    found += truth && yes, wrong += !truth && yes, missed += truth && !yes;
    scores[size_t(c)].add(probability ? log_odds(values[c]) : values[c], truth);
  }
  correct += right;
  add_loss(total);
  return {0, set, called, float(surest), float(total), right};
}

SampleRow PredictionState::judge_number(const double* values, const double* targets) {
  double squared = 0, absolute = 0, farthest = 0;
  for (int64_t c = 0; c < settings_.outputs; ++c) {
    double error = values[c] - targets[c];
    squared += error * error / double(settings_.outputs);
    absolute += std::abs(error) / double(settings_.outputs);
    farthest = std::max(farthest, std::abs(error));
  }
  absolute_error += absolute;
  squared_error += squared;
  fourth_powers += squared * squared;
  add_loss(squared);
  bool near = farthest <= settings_.tolerance;
  correct += near;
  int64_t right = settings_.tolerance < 0 ? SampleRow::kNotJudged : near ? SampleRow::kRight : SampleRow::kWrong;
  return {0, targets[0], values[0], 0, float(squared), right};
}

void PredictionState::judge(const at::Tensor& columns, const at::Tensor& labels, const std::vector<int64_t>& which) {
  const int64_t width = columns.size(1);
  const double* values = columns.data_ptr<double>();
  const auto classes = int64_t(settings_.classes.size());
  const bool by_class = settings_.by_class(), judged = settings_.task != Task::kNone;
  at::Tensor targets = judged && !by_class ? labels.to(at::kDouble).contiguous() : at::Tensor();
  at::Tensor numbers = by_class ? labels.to(at::kLong).contiguous() : at::Tensor();
  for (size_t i = 0; i < which.size(); ++i, values += width) {
    bool finite = true;
    for (int64_t c = 0; c < width; ++c) finite = finite && std::isfinite(values[c]);
    SampleRow row{0, NAN, NAN, NAN, NAN, judged ? SampleRow::kWrong : SampleRow::kNotJudged};
    int64_t label = by_class ? numbers.data_ptr<int64_t>()[i] : 0;
    if (by_class && (label < 0 || label >= classes))
      throw InputError(
          fmt::format("{}: input {} has label {}, the model has {} classes", settings_.data, which[i], label, classes),
          label == classes ? "Do the labels start at 1? Class numbers start at 0 here." : "");
    if (by_class) ++label_counts[size_t(label)], row.label = double(label);
    ++samples;
    not_finite += !finite;
    if (finite && by_class) {
      row = judge_class(values, label);
    } else if (finite && judged) {
      const double* target = targets.data_ptr<double>() + int64_t(i) * width;
      row = settings_.task == Task::kLabels ? judge_labels(values, target) : judge_number(values, target);
    } else if (finite) {
      Answer answer =
          width == 1 ? Answer{values[0], 0, 0} : judge_classes(values, width, -1, settings_.head.without_logits());
      row.predicted = answer.predicted, row.confidence = float(answer.confidence);
    }
    row.sample = which[i];
    if (keep_rows_) rows.push_back(row);
  }
}

void PredictionState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const PredictionState&>(later);
  samples += other.samples;
  correct += other.correct;
  not_finite += other.not_finite;
  loss += other.loss;
  loss_squares += other.loss_squares;
  absolute_error += other.absolute_error;
  squared_error += other.squared_error;
  fourth_powers += other.fourth_powers;
  for (size_t i = 0; i < confusion.size(); ++i) confusion[i] += other.confusion[i];
  for (size_t i = 0; i < label_counts.size(); ++i) label_counts[i] += other.label_counts[i];
  for (size_t i = 0; i < found_wrong_missed.size(); ++i)
    for (size_t part = 0; part < 3; ++part) found_wrong_missed[i][part] += other.found_wrong_missed[i][part];
  for (size_t i = 0; i < scores.size(); ++i) scores[i].merge(other.scores[i]);
  rows.insert(rows.end(), other.rows.begin(), other.rows.end());
}

void PredictionState::save(std::ostream& out) const {
  for (int64_t number : {samples, correct, not_finite}) stream::put(out, number);
  for (double number : {loss, loss_squares, absolute_error, squared_error, fourth_powers}) stream::put(out, number);
  for (int64_t count : confusion) stream::put(out, count);
  for (int64_t count : label_counts) stream::put(out, count);
  for (const auto& label : found_wrong_missed)
    for (int64_t count : label) stream::put(out, count);
  for (const ScoreCounts& counts : scores) counts.save(out);
  stream::put(out, std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(SampleRow)));
}

void PredictionState::load(std::istream& in) {
  for (int64_t* number : {&samples, &correct, &not_finite}) *number = stream::get_int(in);
  for (double* number : {&loss, &loss_squares, &absolute_error, &squared_error, &fourth_powers})
    *number = stream::get_double(in);
  for (int64_t& count : confusion) count = stream::get_int(in);
  for (int64_t& count : label_counts) count = stream::get_int(in);
  for (auto& label : found_wrong_missed)
    for (int64_t& count : label) count = stream::get_int(in);
  for (ScoreCounts& counts : scores) counts.load(in);
  std::string bytes = stream::get_text(in);
  if (bytes.size() % sizeof(SampleRow) != 0) fail("the state file is damaged");
  rows.resize(bytes.size() / sizeof(SampleRow));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(rows.data()));
  require_consistent();
}

void PredictionState::require_consistent() const {
  auto within = [](int64_t part, int64_t whole) {
    if (part < 0 || part > whole) fail("the state file is damaged: its counts contradict each other");
  };
  within(samples, int64_t(1) << 50), within(correct, samples), within(not_finite, samples);
  const size_t classes = label_counts.size();
  int64_t labelled = 0, right = 0;
  for (size_t label = 0; label < classes; ++label) {
    int64_t judged = 0;
    within(label_counts[label], samples);
    for (size_t c = 0; c < classes && !confusion.empty(); ++c) {
      within(confusion[label * classes + c], samples);
      judged += confusion[label * classes + c];
    }
    within(judged, label_counts[label]);
    labelled += label_counts[label];
    right += confusion.empty() ? 0 : confusion[label * classes + label];
  }
  if (settings_.by_class() && (labelled != samples || right != correct))
    fail("the state file is damaged: its counts contradict each other");
  for (const auto& label : found_wrong_missed) {
    for (int64_t count : label) within(count, samples);
    within(label[0] + label[1] + label[2], samples);
  }
}

PredictionResult finish(const Predictions& observer, const PredictionState& state) {
  PredictionResult result;
  result.samples = state.samples;
  result.correct = state.correct;
  result.not_finite = state.not_finite;
  auto rate = [](int64_t part, int64_t whole) { return whole > 0 ? double(part) / double(whole) : 0.0; };
  int64_t finite = state.samples - state.not_finite;
  auto mean = [&](double sum) { return finite > 0 ? sum / double(finite) : NAN; };
  result.accuracy = rate(state.correct, state.samples);
  result.loss = mean(state.loss);
  result.mae = mean(state.absolute_error);
  result.rmse = std::sqrt(mean(state.squared_error));
  result.metrics = measure(observer.settings(), state);
  const auto& classes = observer.settings().classes;
  if (state.confusion.empty()) return result;
  for (size_t label = 0; label < classes.size(); ++label) {
    std::vector<int64_t> row(state.confusion.begin() + std::ptrdiff_t(label * classes.size()),
                             state.confusion.begin() + std::ptrdiff_t((label + 1) * classes.size()));
    ClassResult about{classes[label], state.label_counts[label], row[label], 0};
    for (size_t c = 0; c < classes.size(); ++c) {
      about.predicted += state.confusion[c * classes.size() + label];
    }
    about.recall = rate(about.correct, about.samples);
    about.precision = rate(about.correct, about.predicted);
    about.range = stats::rate(about.correct, about.samples);
    result.per_class.push_back(about);
    result.confusion.push_back(std::move(row));
  }
  return result;
}

nlohmann::json to_json(const PredictionSettings& settings) {
  return {{"task", int(settings.task)},
          {"outputs", settings.outputs},
          {"classes", settings.classes},
          {"data", settings.data},
          {"gives", int(settings.head.output_kind)},
          {"output", settings.head.output},
          {"logits", settings.head.logits},
          {"metric", settings.metric},
          {"positive", settings.positive},
          {"threshold", settings.threshold},
          {"tolerance", settings.tolerance}};
}

PredictionSettings settings_from_json(const JsonView& json) {
  PredictionSettings settings;
  settings.task = Task(json.at("task").whole(0, int(Task::kNone)));
  settings.outputs = json.at("outputs").whole(1, int64_t(1) << 31);
  settings.classes = json.at("classes").texts();
  settings.data = json.at("data").text();
  settings.head = {model::ValueId(json.at("output").whole(-1, INT32_MAX)),
                   model::ValueId(json.at("logits").whole(-1, INT32_MAX)),
                   OutputKind(json.at("gives").whole(0, int(OutputKind::kSigmoid)))};
  settings.metric = json.at("metric").text();
  if (!settings.metric.empty()) json.at("metric").choice(metric_names());
  settings.positive = json.at("positive").whole(0);
  settings.threshold = json.at("threshold").number();
  settings.tolerance = json.at("tolerance").number();
  const int64_t classes = settings.task == Task::kBinary ? 2 : settings.task == Task::kNumber ? 0 : settings.outputs;
  if (int64_t(settings.classes.size()) != classes)
    json.at("classes").refuse(fmt::format("has {} names for {} classes", settings.classes.size(), classes));
  if (settings.by_class() && settings.positive >= std::max<int64_t>(2, classes))
    json.at("positive").refuse("is not a class");
  return settings;
}

}  // namespace netmend::observers
