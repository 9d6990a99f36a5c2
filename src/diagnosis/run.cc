#include "diagnosis/run.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace netmend::diagnosis {
namespace {

using records::Line;
using records::Record;

/// The names of Keras for the losses of every framework.
std::string usual_loss(const std::string& name) {
  static const std::map<std::string, std::string> names = {
      {"mse", "mean_squared_error"},
      {"meansquarederror", "mean_squared_error"},
      {"mse_loss", "mean_squared_error"},
      {"mae", "mean_absolute_error"},
      {"meanabsoluteerror", "mean_absolute_error"},
      {"l1_loss", "mean_absolute_error"},
      {"mape", "mean_absolute_percentage_error"},
      {"meanabsolutepercentageerror", "mean_absolute_percentage_error"},
      {"cross_entropy", "sparse_categorical_crossentropy"},
      {"nll_loss", "sparse_categorical_crossentropy"},
      {"binary_cross_entropy", "binary_crossentropy"},
      {"binary_cross_entropy_with_logits", "binary_crossentropy"},
      {"binarycrossentropy", "binary_crossentropy"},
      {"categoricalcrossentropy", "categorical_crossentropy"},
      {"sparsecategoricalcrossentropy", "sparse_categorical_crossentropy"},
      {"smooth_l1_loss", "huber"},
      {"huber_loss", "huber"},
      {"huberloss", "huber"}};
  const auto found = names.find(lower(name));
  return found == names.end() ? lower(name) : found->second;
}

/// Names of functions as autograd and Keras have them, in one word.
std::string usual_function(const std::string& name) {
  std::string word = lower(name);
  if (word.starts_with("softmax")) return "softmax";
  if (word == "addmm" || word == "gemm" || word == "matmul" || word == "mm" || word.starts_with("conv"))
    return "linear";
  if (word == "relu_" || word == "relu6") return "relu";
  if (word == "sigmoid_") return "sigmoid";
  return word;
}

Targets targets_of(const Line& line, int64_t rows) {
  Targets targets;
  targets.seen = !line.empty();
  targets.whole = line.flag("whole"), targets.one_hot = line.flag("one_hot"), targets.sorted = line.flag("sorted");
  targets.width = std::max<int64_t>(1, line.whole("width", 1));
  targets.classes = line.whole("classes"), targets.distinct = line.whole("distinct");
  targets.rows = rows;
  targets.min = line.number("min"), targets.max = line.number("max");
  targets.mean = line.number("mean"), targets.deviation = line.number("std");
  targets.counts = line.numbers("counts");
  return targets;
}

Inputs inputs_of(const Line& line, int64_t rows) {
  Inputs inputs;
  inputs.seen = !line.empty();
  inputs.whole = line.flag("whole"), inputs.integer = line.flag("integer"), inputs.nan = line.flag("nan");
  inputs.shape = line.wholes("shape");
  inputs.min = line.number("min"), inputs.max = line.number("max");
  inputs.mean = line.number("mean"), inputs.deviation = line.number("std");
  inputs.deviation_ratio = line.number("std_ratio"), inputs.largest_deviation = line.number("std_max");
  inputs.duplicates = rows > 0 ? line.number("duplicates", 0) / double(rows) : 0;
  return inputs;
}

void read_keras(const Record& record, Run& run) {
  const Line fit = record.first("fit"), data = record.first("data");
  run.keras = true;
  run.loss = usual_loss(fit.text("loss"));
  run.from_logits = fit.flag("from_logits");
  run.metrics = fit.texts("metrics");
  run.source_fit = fit.text("source");
  run.fits = int64_t(record.of("fit").size());
  for (const Line& one : record.of("fit")) run.epochs_planned += std::max<int64_t>(0, one.whole("epochs"));
  run.batch = fit.whole("batch"), run.rows = fit.whole("rows");
  run.targets = targets_of(data.part("targets"), run.rows);
  run.inputs = inputs_of(data.part("inputs"), run.rows);
  for (const records::Step& step : record.steps) {
    const std::vector<int64_t> shape = step.facts.wholes("output_shape");
    if (!shape.empty() && !run.outputs) run.outputs = shape.size() > 1 ? shape.back() : 1;
  }
  for (auto layer = run.layers.rbegin(); layer != run.layers.rend() && !run.outputs; ++layer)
    run.outputs = layer->whole("units");
}

void read_torch(const Record& record, Run& run) {
  const Line loss = record.last("loss"), data = record.last("data");
  const std::string kind = loss.text("type");
  run.loss = usual_loss(kind);
  run.source_loss = loss.text("source");
  run.from_logits = kind == "cross_entropy" || kind == "binary_cross_entropy_with_logits";
  run.inputs = inputs_of(data.part("inputs"), 0);
  if (loss.empty()) return;
  const std::vector<int64_t> shape = loss.wholes("shape"), target = loss.wholes("target_shape");
  run.outputs = shape.size() > 1 ? shape[1] : 1;
  run.batch = shape.empty() ? 0 : shape[0];
  Targets& targets = run.targets;
  targets.seen = loss.has("min_target");
  targets.whole = loss.flag("all_targets_whole"), targets.one_hot = loss.flag("all_one_hot");
  targets.width = target.size() > 1 ? target[1] : 1;
  targets.min = loss.number("min_target"), targets.max = loss.number("max_target");
  targets.mean = loss.number("target_mean"), targets.deviation = loss.number("target_std");
  targets.counts = loss.numbers("counts");
  targets.classes = int64_t(targets.counts.size());
  targets.sorted = loss.flag("ordered");
  for (const Line& loader : record.of("loader"))
    if (run.rows == 0) run.rows = loader.whole("rows"), run.epochs_planned = loader.whole("epochs");
}

Task task_of(const Run& run) {
  const Targets& t = run.targets;
  const bool classes = run.loss.find("crossentropy") != std::string::npos;
  if (!t.seen) return Task::kUnknown;
  if (t.one_hot) return t.width == 2 ? Task::kBinary : Task::kMulticlass;
  bool counts_right = false;  // accuracy is asked for: somebody thinks of classes
  for (const std::string& metric : run.metrics) counts_right = counts_right || metric.find("acc") != std::string::npos;
  for (const records::Epoch& epoch : run.record->epochs) counts_right = counts_right || epoch.metrics.count("accuracy");
  if (t.width > 1)
    return t.whole && t.min >= 0 && t.max <= 1 && (classes || counts_right) ? Task::kMultilabel : Task::kRegression;
  if (!t.whole) return Task::kRegression;
  const bool few = t.classes > 0 && t.classes <= 20 && (t.rows == 0 || t.classes * 5 <= t.rows);
  if (!run.keras && run.loss == "sparse_categorical_crossentropy")
    return std::max(run.outputs, t.classes) <= 2 ? Task::kBinary : Task::kMulticlass;
  const bool counted = (run.loss == "sparse_categorical_crossentropy" && t.classes > 0 && t.min >= 0) ||
                       (run.loss == "binary_crossentropy" && t.classes == 2 && t.min >= 0 && t.max <= 1);
  if (!few && !counted) return Task::kRegression;
  if (t.classes <= 2 && (classes || counts_right || (t.min >= 0 && t.max <= 1))) return Task::kBinary;
  if (classes || counts_right) return Task::kMulticlass;
  return Task::kRegression;
}

std::vector<double> metric_series(const Record& record, std::initializer_list<const char*> names) {
  std::vector<double> values;
  bool any = false;
  for (const records::Epoch& epoch : record.epochs) {
    double value = NAN;
    for (const char* name : names)
      if (const auto found = epoch.metrics.find(name); found != epoch.metrics.end() && std::isnan(value))
        value = found->second, any = true;
    values.push_back(value);
  }
  return any ? values : std::vector<double>();
}

/// Blocks of steps stand for epochs where there are none: 20 of them, or as many as there are steps.
std::vector<double> blocks(const std::vector<double>& values, size_t count) {
  std::vector<double> means;
  if (values.empty()) return means;
  count = std::min(count, values.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t from = i * values.size() / count, to = (i + 1) * values.size() / count;
    means.push_back(std::accumulate(values.begin() + long(from), values.begin() + long(to), 0.0) / double(to - from));
  }
  return means;
}

void read_curves(const Record& record, Run& run) {
  if (const auto series = record.series.find(0); series != record.series.end()) {
    run.step_losses = series->second.losses;
    if (!series->second.steps.empty()) run.steps = series->second.steps.back();
  }
  run.losses = metric_series(record, {"loss"});
  run.accuracies = metric_series(
      record, {"accuracy", "acc", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"});
  run.val_losses = metric_series(record, {"val_loss"});
  run.val_accuracies =
      metric_series(record, {"val_accuracy", "val_acc", "val_binary_accuracy", "val_categorical_accuracy"});
  // PyTorch's epochs hold the losses of the steps that were looked at; the series holds all.
  const bool whole = run.keras || record.header.empty() || record.first("framework").text("name") == "netmend";
  run.by_epoch = run.losses.size() >= 3 && whole;
  if (!run.by_epoch && run.step_losses.size() >= 2) run.losses = blocks(run.step_losses, 20);
  for (const records::Epoch& epoch : record.epochs) run.steps = std::max(run.steps, epoch.step);
  if (run.steps == 0) run.steps = std::max<int64_t>(0, record.first("summary").whole("steps"));
}

void read_tracks(const Record& record, Run& run) {
  std::map<std::string, size_t> places;
  for (const records::Step& step : record.steps) {
    if (step.optimizer != 0 && !run.keras) continue;
    run.probes.push_back(step);
    for (const auto& [name, row] : step.layers) {
      const auto [place, fresh] = places.try_emplace(name, run.tracks.size());
      if (fresh) run.tracks.push_back({name, {}, {}});
      run.tracks[place->second].steps.push_back(step.step);
      run.tracks[place->second].rows.push_back(row);
    }
  }
}

/// In the order of the network: a record's names come sorted, `10.weight` before `2.weight`.
void order_tracks(Run& run) {
  std::vector<std::pair<std::string, size_t>> layers;
  for (size_t i = 0; i < run.layers.size(); ++i) layers.emplace_back(run.layers[i].text("name"), i);
  auto rank = [&](const std::string& track) {
    size_t best = layers.size(), length = 0;
    for (const auto& [name, place] : layers)
      if (name.size() > length && track.starts_with(name)) best = place, length = name.size();
    return best;
  };
  std::map<std::string, size_t> places;
  for (const Track& track : run.tracks) places[track.name] = rank(track.name);
  std::stable_sort(run.tracks.begin(), run.tracks.end(),
                   [&](const Track& a, const Track& b) { return places[a.name] < places[b.name]; });
}

}  // namespace

std::string task_name(Task task) {
  static const char* names[] = {"unknown", "regression", "binary", "multiclass", "multilabel"};
  return names[int(task)];
}

Run digest(const Record& record) {
  Run run;
  run.record = &record;
  run.graph = record.first("graph");
  run.last = usual_function(run.graph.text("last"));
  run.before_last = usual_function(run.graph.text("before_last"));
  // Keras describes a network before and after its weights are made.
  const Line optimizer = record.first("optimizer");
  Line model = record.first("model");
  for (const Line& again : record.of("model"))
    if (again.whole("model") == model.whole("model")) model = again;
  run.layers = model.list("layers");
  run.parameters = model.whole("parameters");
  run.optimizer = optimizer.text("type");
  run.rate = optimizer.number("lr");
  run.source_optimizer = optimizer.text("source");
  if (!record.of("fit").empty())
    read_keras(record, run);
  else
    read_torch(record, run);
  read_curves(record, run);
  read_tracks(record, run);
  order_tracks(run);
  for (const Line& summary : record.of("summary"))
    if (const double value = summary.part("largest_gradient").number("value"); value > 0)
      run.largest_gradient = std::isfinite(run.largest_gradient) ? std::max(run.largest_gradient, value) : value;
  run.task = task_of(run);
  return run;
}

bool Run::finite() const {
  return std::all_of(losses.begin(), losses.end(), [](double value) { return std::isfinite(value); });
}

double Run::first_loss() const {
  if (!step_losses.empty()) return step_losses.front();
  return losses.empty() ? NAN : losses.front();
}

double Run::last_loss() const {
  if (losses.empty()) return NAN;
  const size_t count = std::max<size_t>(1, losses.size() / 10);
  return std::accumulate(losses.end() - long(count), losses.end(), 0.0) / double(count);
}

double Run::best_loss() const {
  double best = NAN;
  for (double value : losses)
    if (std::isfinite(value) && !(value >= best)) best = value;
  return best;
}

double Run::uniform_loss() const {
  if (loss == "sparse_categorical_crossentropy" || loss == "categorical_crossentropy")
    return outputs > 1 ? std::log(double(outputs)) : NAN;
  return loss == "binary_crossentropy" ? std::log(2.0) : NAN;
}

double Run::first_class_loss() const {
  if (std::isnan(uniform_loss())) return NAN;
  if (keras) return probes.empty() || probes.front().step > 0 ? NAN : probes.front().facts.number("probe_loss");
  if (record->first("framework").text("name") == "netmend") return first_loss();
  const Line line = record->first("loss");
  const std::string reduction = line.text("reduction");
  const bool mean = (reduction.empty() || reduction == "mean") && !line.flag("weighted");
  return mean && record->of("loss").size() > 0 ? line.number("first_loss") : NAN;
}

double Run::majority() const {
  double all = 0, most = 0;
  for (const auto& [label, count] : targets.counts) all += count, most = std::max(most, count);
  return all > 0 ? most / all : NAN;
}

double Run::constant_loss() const {
  if (task == Task::kRegression && loss == "mean_squared_error") return targets.deviation * targets.deviation;
  if (loss.find("crossentropy") == std::string::npos) return NAN;
  double all = 0, entropy = 0;
  for (const auto& [label, count] : targets.counts) all += count;
  for (const auto& [label, count] : targets.counts)
    if (count > 0) entropy -= count / all * std::log(count / all);
  return all > 0 ? entropy : NAN;
}

bool Run::hidden_is(const std::string& function) const {
  size_t weighted = 0, seen = 0;
  for (const Line& layer : layers) weighted += layer.text("role") == "linear" || layer.text("role") == "conv";
  for (const Line& layer : layers) {
    const std::string role = layer.text("role");
    seen += role == "linear" || role == "conv";
    if (layer.text("activation") == function && (seen < weighted || role == "recurrent")) return true;
  }
  for (const std::string& op : graph.texts("ops"))
    if (usual_function(op) == function) return true;
  return false;
}

bool Run::learned() const {
  const double best = best_loss(), constant = constant_loss();
  double accuracy = NAN;
  for (const auto* series : {&accuracies, &val_accuracies})
    if (!series->empty() && std::isfinite(series->back()))
      accuracy = std::isnan(accuracy) ? series->back() : std::max(accuracy, series->back());
  // A loss that stays where it was makes a good accuracy chance.
  const bool stayed = constant > 0 && best > 0.95 * constant && best > 0.95 * first_loss();
  if (std::isfinite(accuracy) && task != Task::kRegression && std::isfinite(majority()))
    return !stayed && accuracy > majority() + 0.5 * (1 - majority()) * 0.5;
  if (std::isfinite(constant) && constant > 0) return best < 0.7 * constant;
  return std::isfinite(best) && best < 0.5 * first_loss();
}

int64_t first_difference(const Run& a, const Run& b) {
  const size_t both = std::min(a.step_losses.size(), b.step_losses.size());
  for (size_t i = 0; i < both; ++i)
    if (a.step_losses[i] != b.step_losses[i] && !(std::isnan(a.step_losses[i]) && std::isnan(b.step_losses[i])))
      return int64_t(i) + 1;
  return a.step_losses.size() == b.step_losses.size() ? 0 : int64_t(both) + 1;
}

}  // namespace netmend::diagnosis
