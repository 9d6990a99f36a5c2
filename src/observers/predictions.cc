#include "observers/predictions.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "stream/pass.h"

namespace netmend::observers {
namespace {

using dataset::LabelKind;
using executor::Gives;

/// Outputs as inputs × columns: axes of size 1 behind the columns are dropped.
at::Tensor as_columns(const at::Tensor& output) {
  at::Tensor flat = output.dim() == 1 ? output.unsqueeze(1) : output;
  while (flat.dim() > 2 && flat.size(-1) == 1) flat = flat.squeeze(-1);
  while (flat.dim() > 2 && flat.size(1) == 1) flat = flat.squeeze(1);
  return flat;
}

bool looks_like_probabilities(const at::Tensor& columns) {
  if (columns.size(1) < 2) return columns.min().item<double>() >= 0 && columns.max().item<double>() <= 1;
  return columns.min().item<double>() >= 0 && ((columns.sum(1) - 1).abs() < 1e-3).all().item<bool>();
}

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double surprise(double probability) { return -std::log(std::max(probability, 1e-12)); }

bool is_probability(const executor::Head& head) { return head.logits == head.output && head.gives != Gives::kLogits; }

}  // namespace

std::string task_name(Task task) {
  const char* names[] = {"classes", "binary", "labels", "number", "none"};
  return names[int(task)];
}

PredictionSettings settle_task(const model::Graph& graph, const executor::Head& head, const dataset::Info& data,
                               const dataset::Batch& batch, const at::Tensor& output) {
  at::Tensor columns = as_columns(output);
  const std::string& name = graph.values[size_t(head.output)].name;
  if (columns.dim() != 2 || columns.size(0) != batch.count())
    fail("output `{}` has the shape {}: an answer an input is expected", name,
         shape_text({output.sizes().data(), output.sizes().size()}));
  PredictionSettings settings;
  settings.head = head;
  settings.outputs = columns.size(1);
  settings.data = data.spec;
  settings.task = data.labels == LabelKind::kNone     ? Task::kNone
                  : data.labels == LabelKind::kNumber ? Task::kNumber
                  : data.labels == LabelKind::kMulti  ? Task::kLabels
                  : settings.outputs == 1             ? Task::kBinary
                                                      : Task::kClasses;
  int64_t classes = settings.task == Task::kBinary ? 2 : settings.outputs;
  if (settings.task == Task::kClasses && int64_t(data.classes.size()) > classes)
    throw InputError(
        fmt::format("{} has {} classes, output `{}` has {}", data.spec, data.classes.size(), name, classes),
        "Is it the right output? --output NAME chooses another.");
  if (settings.task == Task::kLabels && data.label_width != settings.outputs)
    fail("{} has {} labels an input, output `{}` has {} columns", data.spec, data.label_width, name, settings.outputs);
  if (settings.task == Task::kNumber && data.label_width != settings.outputs)
    fail("{} has {} numbers an input, output `{}` has {} columns", data.spec, data.label_width, name, settings.outputs);
  for (int64_t c = 0; c < classes; ++c)
    settings.classes.push_back(c < int64_t(data.classes.size()) ? data.classes[size_t(c)] : std::to_string(c));
  bool judged = settings.task == Task::kClasses || settings.task == Task::kBinary || settings.task == Task::kNone;
  if (judged && head.gives == Gives::kLogits && looks_like_probabilities(columns))
    settings.head.gives = Gives::kProbabilities;
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
  bool counted = settings.task == Task::kClasses || settings.task == Task::kBinary;
  if (counted) confusion.resize(settings.classes.size() * settings.classes.size());
  if (counted) label_counts.resize(settings.classes.size());
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

Answer judge_classes(const double* row, int64_t width, int64_t label, bool probabilities) {
  int64_t best = 0;
  for (int64_t c = 1; c < width; ++c)
    if (row[c] > row[best]) best = c;
  if (probabilities) return {double(best), row[best], label < 0 ? 0 : surprise(row[label])};
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += std::exp(row[c] - row[best]);
  return {double(best), 1 / sum, label < 0 ? 0 : std::log(sum) + (row[best] - row[label])};
}

Answer judge_binary(double value, int64_t label, bool probability) {
  double p = probability ? value : sigmoid(value);
  double loss = probability ? surprise(label == 1 ? p : 1 - p) : softplus(label == 1 ? -value : value);
  return {double(p > 0.5), std::max(p, 1 - p), loss};
}

}  // namespace

void PredictionState::judge(const at::Tensor& columns, const at::Tensor& labels, const std::vector<int64_t>& which) {
  const int64_t width = columns.size(1);
  const double* values = columns.data_ptr<double>();
  const bool probability = is_probability(settings_.head);
  const auto classes = int64_t(settings_.classes.size());
  at::Tensor targets =
      labels.defined() && settings_.task >= Task::kLabels ? labels.to(at::kDouble).contiguous() : at::Tensor();
  at::Tensor numbers =
      labels.defined() && settings_.task < Task::kLabels ? labels.to(at::kLong).contiguous() : at::Tensor();
  for (size_t i = 0; i < which.size(); ++i, values += width) {
    SampleRow row{which[i]};
    bool finite = true;
    for (int64_t c = 0; c < width; ++c) finite = finite && std::isfinite(values[c]);
    not_finite += !finite;
    ++samples;
    if (!finite) row.predicted = row.label = row.confidence = row.loss = NAN;
    if (settings_.task == Task::kClasses || settings_.task == Task::kBinary) {
      int64_t label = numbers.data_ptr<int64_t>()[i];
      if (label < 0 || label >= classes)
        fail("{}: input {} has label {}, the model has {} classes", settings_.data, which[i], label, classes);
      row.label = double(label);
      ++label_counts[size_t(label)];
      if (finite) {
        Answer answer = settings_.task == Task::kClasses ? judge_classes(values, width, label, probability)
                                                         : judge_binary(values[0], label, probability);
        ++confusion[size_t(label * classes + int64_t(answer.predicted))];
        correct += int64_t(answer.predicted) == label;
        loss += answer.loss;
        row = {which[i], double(label), answer.predicted, float(answer.confidence), float(answer.loss)};
      }
    } else if (settings_.task == Task::kNone) {
      if (!finite) {
        if (keep_rows_) rows.push_back(row);
        continue;
      }
      Answer answer = width == 1 ? Answer{values[0], 0, 0} : judge_classes(values, width, -1, probability);
      row = {which[i], NAN, answer.predicted, float(answer.confidence), NAN};
    } else {
      double total = 0, all_right = 1;
      for (int64_t c = 0; c < width; ++c) {
        double target = targets.data_ptr<double>()[int64_t(i) * width + c], error = values[c] - target;
        if (settings_.task == Task::kNumber) {
          total += error * error / double(width);
          if (finite) absolute_error += std::abs(error) / double(width), squared_error += error * error / double(width);
        } else {
          Answer answer = judge_binary(values[c], target > 0.5, probability);
          total += answer.loss / double(width);
          all_right = all_right && answer.predicted == double(target > 0.5);
        }
      }
      if (finite) loss += total;
      if (settings_.task == Task::kLabels) correct += int64_t(all_right && finite);
      row = {which[i], targets.data_ptr<double>()[int64_t(i) * width], values[0], 0, float(total)};
    }
    if (keep_rows_) rows.push_back(row);
  }
}

void PredictionState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const PredictionState&>(later);
  samples += other.samples;
  correct += other.correct;
  not_finite += other.not_finite;
  loss += other.loss;
  absolute_error += other.absolute_error;
  squared_error += other.squared_error;
  for (size_t i = 0; i < confusion.size(); ++i) confusion[i] += other.confusion[i];
  for (size_t i = 0; i < label_counts.size(); ++i) label_counts[i] += other.label_counts[i];
  rows.insert(rows.end(), other.rows.begin(), other.rows.end());
}

void PredictionState::save(std::ostream& out) const {
  for (int64_t number : {samples, correct, not_finite}) stream::put(out, number);
  for (double number : {loss, absolute_error, squared_error}) stream::put(out, number);
  for (int64_t count : confusion) stream::put(out, count);
  for (int64_t count : label_counts) stream::put(out, count);
  stream::put(out, std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(SampleRow)));
}

void PredictionState::load(std::istream& in) {
  for (int64_t* number : {&samples, &correct, &not_finite}) *number = stream::get_int(in);
  for (double* number : {&loss, &absolute_error, &squared_error}) *number = stream::get_double(in);
  for (int64_t& count : confusion) count = stream::get_int(in);
  for (int64_t& count : label_counts) count = stream::get_int(in);
  std::string bytes = stream::get_text(in);
  if (bytes.size() % sizeof(SampleRow) != 0) fail("the state file is damaged");
  rows.resize(bytes.size() / sizeof(SampleRow));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(rows.data()));
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
    result.per_class.push_back(about);
    result.confusion.push_back(std::move(row));
  }
  return result;
}

nlohmann::json to_json(const PredictionSettings& settings) {
  return {{"task", int(settings.task)},    {"outputs", settings.outputs},       {"classes", settings.classes},
          {"data", settings.data},         {"gives", int(settings.head.gives)}, {"output", settings.head.output},
          {"logits", settings.head.logits}};
}

PredictionSettings settings_from_json(const nlohmann::json& json) {
  PredictionSettings settings;
  settings.task = Task(json.at("task").get<int>());
  settings.outputs = json.at("outputs");
  settings.classes = json.at("classes").get<std::vector<std::string>>();
  settings.data = json.at("data");
  settings.head = {json.at("output"), json.at("logits"), Gives(json.at("gives").get<int>())};
  return settings;
}

}  // namespace netmend::observers
