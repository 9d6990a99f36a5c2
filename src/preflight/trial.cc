#include "preflight/trial.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

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

/// Spread over the data and mixed; another offset gives others, in halves where there are few.
std::vector<int64_t> chosen(int64_t size, double offset) {
  std::vector<int64_t> samples = stream::spread(size, std::min(Trial::kInputs, std::max<int64_t>(1, size / 2)), offset);
  std::mt19937 random(1);
  for (size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random() % i]);
  return samples;
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

bool improves_accuracy(const PredictionSettings& settings, const Rows& rows, const Rows& better) {
  int64_t fixed = 0, broken = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    double before = error_of(settings, rows[i]), after = error_of(settings, better[i]);
    fixed += int64_t(after < before);
    broken += int64_t(after > before);
  }
  double before = mean_error(settings, rows), after = mean_error(settings, better);
  const bool number = settings.task == Task::kNumber;
  bool large = after <= 0.8 * before && (number || before - after >= 0.03);
  large = large || (!number && before - after >= 0.12);
  return large && fixed > broken && stats::sign_test(fixed, broken) < kUnlikely;
}

double mean_loss(const Rows& rows) {
  double sum = 0;
  for (const SampleRow& row : rows) sum += std::isnan(row.loss) ? INFINITY : double(row.loss);
  return rows.empty() ? NAN : sum / double(rows.size());
}

double uniform_loss(const PredictionSettings& settings) { return std::log(double(settings.classes.size())); }

bool lowers_loss(const PredictionSettings& settings, const Rows& rows, const Rows& better) {
  if (!settings.by_class()) return false;
  return mean_error(settings, better) <= mean_error(settings, rows) + 0.03 && mean_error(settings, better) < 0.5 &&
         mean_loss(rows) > uniform_loss(settings) && mean_loss(better) < uniform_loss(settings) / 2;
}

std::string input_line(const std::string& input, const std::map<std::string, std::string>& options) {
  if (options.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [key, value] : options) parts.push_back(toml_text(key, value));
  return fmt::format("input.{} = {{ {} }}", session::toml_key(input), join(parts, ", "));
}

Trial::Trial(const stream::Subject& subject, const PredictionSettings& settings, int jobs)
    : subject(subject), settings(settings), jobs(jobs) {
  first = subject.data->read(chosen(subject.data->size(), 0.1));
}

Batch Trial::read_fresh() const { return subject.data->read(chosen(subject.data->size(), 0.6)); }

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
