#include "preflight/trial.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/text.h"
#include "session/toml_edit.h"

namespace netmend::preflight {

using dataset::Batch;
using observers::PredictionSettings;
using observers::SampleRow;
using observers::Task;

namespace {

constexpr double kUnlikely = 1e-3;

double error_of(const PredictionSettings& settings, const SampleRow& row) {
  if (settings.task == Task::kNumber) return std::isnan(row.loss) ? INFINITY : std::sqrt(double(row.loss));
  return row.right == SampleRow::kRight ? 0 : 1;
}

/// Spread over the data and mixed.
std::vector<int64_t> mixed(std::vector<int64_t> samples) {
  std::mt19937 random(1);
  for (size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random() % i]);
  return samples;
}

/// What is judged as logits of the classes, a column each; undefined for tasks without classes.
at::Tensor class_logits(const PredictionSettings& settings, const at::Tensor& values) {
  if (!settings.by_class()) return {};
  at::Tensor columns = observers::as_columns(values).to(at::kDouble);
  const bool probabilities = settings.head.without_logits();
  if (columns.size(1) == 1) {
    if (probabilities) columns = at::logit(columns, 1e-12);
    return at::cat({at::zeros_like(columns), columns}, 1);
  }
  return probabilities ? columns.clamp_min(1e-12).log() : columns;
}

std::vector<double> label_losses(const at::Tensor& logits, const at::Tensor& labels, double temperature) {
  at::Tensor loss = -at::log_softmax(logits / temperature, 1).gather(1, labels.unsqueeze(1)).squeeze(1);
  loss = loss.nan_to_num(1e6, 1e6, 1e6).contiguous();
  return {loss.data_ptr<double>(), loss.data_ptr<double>() + loss.numel()};
}

double average(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? NAN : sum / double(values.size());
}

std::string toml_text(const std::string& key, const std::string& value) {
  if (key == "mean" || key == "std") return fmt::format("{} = [{}]", key, join(split(value, ':'), ", "));
  return fmt::format("{} = {}", key, session::toml_string(value));
}

}  // namespace

Rows judge(const PredictionSettings& settings, const at::Tensor& values, const Batch& batch) {
  observers::Predictions observer(settings, true);
  observers::PredictionState state(observer.settings(), true);
  state.observe({batch, [&](model::ValueId) -> const at::Tensor& { return values; }});
  return std::move(state.rows);
}

double mean_error(const PredictionSettings& settings, const Rows& rows) {
  double sum = 0;
  for (const SampleRow& row : rows) sum += error_of(settings, row);
  return rows.empty() ? NAN : sum / double(rows.size());
}

stats::Estimate figure(const PredictionSettings& settings, const Rows& rows) {
  int64_t right = 0;
  double sum = 0, squares = 0;
  for (const SampleRow& row : rows) {
    double error = error_of(settings, row);
    right += row.right == SampleRow::kRight;
    sum += error, squares += error * error;
  }
  if (settings.task == Task::kNumber) return stats::mean(sum, squares, int64_t(rows.size()));
  return stats::rate(right, int64_t(rows.size()));
}

std::string figure_text(const PredictionSettings& settings, const stats::Estimate& figure) {
  if (settings.task == Task::kNumber) return fmt::format("error {:.4g}", figure.value);
  return fmt::format("{:.1f} %", 100 * figure.value);
}

bool looks_like_log_probabilities(const at::Tensor& columns) {
  return columns.size(1) > 1 && columns.max().item<double>() <= 1e-6 &&
         observers::look_like_probabilities(columns.to(at::kDouble).exp());
}

Changes changes(const PredictionSettings& settings, const Rows& rows, const Rows& other) {
  Changes found;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double before = error_of(settings, rows[i]), after = error_of(settings, other[i]);
    found.fixed += int64_t(after < before);
    found.broken += int64_t(after > before);
  }
  found.p = stats::sign_test(found.fixed, found.broken);
  return found;
}

bool improves_accuracy(const PredictionSettings& settings, const Rows& rows, const Rows& better) {
  const Changes found = changes(settings, rows, better);
  const double before = mean_error(settings, rows), after = mean_error(settings, better);
  const bool number = settings.task == Task::kNumber;
  bool large = after <= 0.8 * before && (number || before - after >= 0.03);
  large = large || (!number && before - after >= 0.12);
  large = large || (!number && after <= 2. / 3 * before && before - after >= 0.01);
  return large && found.fixed > found.broken && found.p < kUnlikely;
}

std::vector<double> losses(const PredictionSettings& settings, const at::Tensor& values, const Batch& batch,
                           double temperature) {
  const at::Tensor logits = class_logits(settings, values);
  return logits.defined() ? label_losses(logits, batch.labels.to(at::kLong), temperature) : std::vector<double>();
}

double Fitted::mean() const { return average(losses); }

Fitted fit_temperature(const PredictionSettings& settings, const at::Tensor& values, const Batch& batch, double most) {
  Fitted best;
  const at::Tensor logits = class_logits(settings, values);
  if (!logits.defined()) return best;
  const at::Tensor labels = batch.labels.to(at::kLong);
  for (double t = 1 / most; t <= most * 1.001; t *= std::sqrt(std::sqrt(2.0))) {
    std::vector<double> now = label_losses(logits, labels, t);
    if (best.losses.empty() || average(now) < best.mean()) best = {t, std::move(now)};
  }
  return best;
}

at::Tensor fit_biases(const PredictionSettings& settings, const at::Tensor& values, const Batch& batch) {
  const at::Tensor logits = class_logits(settings, values);
  if (!logits.defined()) return {};
  const at::Tensor labels = batch.labels.to(at::kLong);
  const int64_t classes = logits.size(1);
  const at::Tensor wanted = (at::bincount(labels, {}, classes).to(at::kDouble) + 0.5) / double(labels.numel());
  at::Tensor bias = at::zeros({classes}, at::kDouble);
  for (int round = 0; round < 100; ++round) {
    at::Tensor given = at::softmax(logits + bias, 1).mean(0).clamp_min(1e-12);
    bias = bias + (wanted / given).log();
  }
  return bias;
}

at::Tensor with_biases(const PredictionSettings& settings, const at::Tensor& values, const at::Tensor& bias) {
  const at::Tensor logits = class_logits(settings, values) + bias;
  const bool probabilities = settings.head.without_logits();
  if (observers::as_columns(values).size(1) == 1) {
    const at::Tensor one = logits.narrow(1, 1, 1) - logits.narrow(1, 0, 1);
    return (probabilities ? at::sigmoid(one) : one).to(values.scalar_type());
  }
  return (probabilities ? at::softmax(logits, 1) : logits).to(values.scalar_type());
}

double mean_loss(const Rows& rows) {
  double sum = 0;
  for (const SampleRow& row : rows) sum += std::isnan(row.loss) ? INFINITY : double(row.loss);
  return rows.empty() ? NAN : sum / double(rows.size());
}

double uniform_loss(const PredictionSettings& settings) { return std::log(double(settings.classes.size())); }

std::string input_line(const std::string& input, const std::map<std::string, std::string>& options) {
  if (options.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [key, value] : options) parts.push_back(toml_text(key, value));
  return fmt::format("input.{} = {{ {} }}", session::toml_key(input), join(parts, ", "));
}

Trial::Trial(const stream::Subject& subject, const PredictionSettings& settings, int jobs)
    : subject(subject), settings(settings), jobs(jobs) {
  const int64_t size = subject.data->size();
  first = subject.data->read(mixed(stream::spread(size, std::min(kInputs, std::max<int64_t>(1, size / 2)), 0.1)));
}

Batch Trial::read_fresh(double work) const {
  const int64_t size = subject.data->size();
  const int64_t count = std::clamp<int64_t>(int64_t(work / subject.cost), kInputs, kMostFresh);
  const std::set<int64_t> seen(first.samples.begin(), first.samples.end());
  std::vector<int64_t> others = mixed(stream::spread(size, std::min(size, count + first.count()), 0.6));
  std::erase_if(others, [&](int64_t sample) { return seen.count(sample) > 0; });
  if (others.empty()) others = first.samples;  // a handful of inputs
  others.resize(std::min(others.size(), size_t(count)));
  fresh = others;
  return subject.data->read(others);
}

Batch Trial::read_further(int64_t skip, int64_t count) const {
  std::set<int64_t> seen(first.samples.begin(), first.samples.end());
  seen.insert(fresh.begin(), fresh.end());
  std::vector<int64_t> others;
  for (int64_t sample = 0; sample < subject.data->size(); ++sample)
    if (!seen.count(sample)) others.push_back(sample);
  others = mixed(std::move(others));
  others.erase(others.begin(), others.begin() + std::min<int64_t>(skip, int64_t(others.size())));
  others.resize(std::min(others.size(), size_t(count)));
  return others.empty() ? Batch{} : subject.data->read(others);
}

model::ValueId Trial::wanted() const {
  return settings.task == Task::kNumber ? settings.head.output : settings.head.logits;
}

std::vector<at::Tensor> Trial::answers(const Batch& batch, const std::vector<model::ValueId>& values) const {
  return stream::run_few(subject, values, batch, jobs);
}

double Trial::chance() const {
  std::map<double, int64_t> counts;
  int64_t most = 0;
  for (const SampleRow& row : asis) most = std::max(most, ++counts[row.label]);
  return double(most) / double(asis.size());
}

bool Trial::near_chance() const {
  stats::Estimate now = figure(settings, asis);
  return settings.by_class() && now.low <= chance() &&
         now.value < 0.9;  // few inputs, all right, are above the baseline
}

std::string Trial::input_name() const {
  for (model::ValueId id : subject.graph.inputs)
    if (at::isFloatingType(model::carrier(subject.graph.values[size_t(id)].type))) return value_name(id);
  return value_name(subject.graph.inputs.at(0));
}

}  // namespace netmend::preflight
