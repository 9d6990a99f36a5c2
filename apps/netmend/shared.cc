#include "netmend/shared.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "onnx/reader.h"

namespace netmend::app {

using model::ValueId;

void print_json(const Json& json) {
  std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void say(const Common& common, const std::string& line) {
  if (!common.quiet) fmt::print(stderr, "{}\n", line);
}

ValueId choose_output(const model::Graph& graph, const std::string& name) {
  if (name.empty()) return graph.outputs.at(0);
  ValueId id = graph.find(name);
  std::vector<std::string> names;
  for (const model::Node& node : graph.nodes) {
    if (id == model::kAbsent && node.name == name && !node.outputs.empty()) id = node.outputs[0];
    for (ValueId output : node.outputs)
      if (output != model::kAbsent) names.push_back(graph.values[size_t(output)].name);
  }
  if (id == model::kAbsent) fail("the model has no value `{}`{}", name, did_you_mean(name, names));
  return id;
}

dataset::Spec test_spec(const std::string& data, const std::string& test, const Config& config) {
  if (!test.empty()) return dataset::parse_spec(test);
  if (!data.empty()) return *dataset::parse_splits(data).test;
  if (!config.test.empty()) return dataset::parse_spec(config.test);
  throw InputError("no data is given", "Add --data SPEC, for example --data mnist:test or --data images:photos.");
}

std::shared_ptr<const dataset::Dataset> first_inputs(std::shared_ptr<const dataset::Dataset> data, int64_t limit) {
  if (limit <= 0 || limit >= data->size()) return data;
  std::vector<int64_t> first(size_t(limit), 0);
  for (int64_t i = 0; i < limit; ++i) first[size_t(i)] = i;
  return dataset::subset(data, std::move(first));
}

std::shared_ptr<const dataset::Dataset> open_data(const Common& common, const dataset::Spec& asked,
                                                  const model::Graph& model, const Config& config, int64_t limit) {
  dataset::Spec spec = asked;
  std::vector<std::string> from_config, from_model;
  auto take = [&](const std::string& key, const std::string& value, std::vector<std::string>& source) {
    if (!spec.options.try_emplace(key, value).second) return;
    source.push_back(fmt::format("{}={}", key, value));
  };
  for (const auto& [key, value] : config.input) take(key, value, from_config);
  if (!config.classes.empty()) take("classes", join(config.classes, ":"), from_config);
  for (const std::string& key : dataset::preprocess_keys())
    if (auto hit = model.metadata.find("netmend.input." + key); hit != model.metadata.end())
      take(key, hit->second, from_model);
  if (!from_config.empty()) say(common, fmt::format("data: {} from {}", join(from_config, " "), config.path));
  if (!from_model.empty()) say(common, fmt::format("data: {} from the model's metadata", join(from_model, " ")));
  return first_inputs(dataset::open(spec), limit);
}

namespace {

at::Tensor first_outputs(const stream::Subject& subject, const executor::Head& head, const dataset::Batch& batch) {
  executor::Request request;
  request.wanted = {head.output};
  executor::Executor executor(subject.batching.graph, request);
  std::vector<at::Tensor> inputs = subject.feed.inputs(batch);
  at::NoGradGuard no_grad;
  if (subject.batching.kind == executor::Batching::kAny) return executor.run(inputs)[0];
  if (subject.batching.kind == executor::Batching::kFixed) {
    for (at::Tensor& input : inputs) {
      std::vector<int64_t> rows;
      for (int64_t i = 0; i < subject.batching.size; ++i) rows.push_back(i % input.size(0));
      input = input.index_select(0, at::tensor(rows, at::kLong));
    }
    at::Tensor output = executor.run(inputs)[0];
    if (output.dim() == 0 || output.size(0) != subject.batching.size) fail("its outputs do not keep the batch axis");
    return output.narrow(0, 0, batch.count());
  }
  std::vector<at::Tensor> rows;
  for (int64_t row = 0; row < batch.count(); ++row) {
    std::vector<at::Tensor> one;
    for (const at::Tensor& input : inputs) one.push_back(input.narrow(0, row, 1));
    at::Tensor out = executor.run(one)[0];
    rows.push_back(out.dim() == 0 ? out.unsqueeze(0) : out);
  }
  return at::cat(rows, 0);
}

}  // namespace

Judged make_judged(const Common& common, const std::string& model, model::Graph graph,
                   std::shared_ptr<const dataset::Dataset> data, const std::string& output) {
  executor::Head head = executor::find_head(graph, choose_output(graph, output));
  stream::Subject subject(model, std::move(graph), data, {head.output, head.logits});
  for (const std::string& note : subject.feed.notes()) say(common, "input: " + note);
  if (!subject.batching.note.empty()) say(common, subject.batching.note);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < std::min<int64_t>(data->size(), 8); ++i) samples.push_back(i);
  dataset::Batch batch = data->read(samples);
  auto settings = observers::settle_task(subject.graph, head, data->info(), batch, first_outputs(subject, head, batch));
  return {std::move(subject), std::move(settings)};
}

stream::PassOptions pass_options(const Common& common) {
  stream::PassOptions options;
  options.jobs = common.jobs;
  options.quiet = common.quiet;
  options.device = at::Device(common.device);
  return options;
}

namespace {

using observers::ClassResult;
using observers::PredictionResult;
using observers::PredictionSettings;
using observers::Task;

void print_classes(const PredictionResult& result) {
  constexpr size_t most = 20;
  std::vector<const ClassResult*> order;
  for (const ClassResult& about : result.per_class) order.push_back(&about);
  bool cut = order.size() > most;
  if (cut) std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->recall < b->recall; });
  size_t width = 5;
  for (size_t i = 0; i < std::min(order.size(), most); ++i) width = std::max(width, order[i]->name.size());
  fmt::print("\n  {:<{}}  inputs   right    recall  precision\n", cut ? "worst" : "class", width);
  for (size_t i = 0; i < std::min(order.size(), most); ++i)
    fmt::print("  {:<{}}  {:>6}  {:>6}   {:>6.2f} %   {:>6.2f} %\n", order[i]->name, width, order[i]->samples,
               order[i]->correct, 100 * order[i]->recall, 100 * order[i]->precision);
  if (cut) fmt::print("  … and {} more classes (--json has all)\n", order.size() - most);
}

void print_confusions(const PredictionSettings& settings, const PredictionResult& result) {
  struct Pair {
    int64_t count;
    size_t label, predicted;
  };
  std::vector<Pair> pairs;
  for (size_t label = 0; label < result.confusion.size(); ++label)
    for (size_t predicted = 0; predicted < result.confusion.size(); ++predicted)
      if (label != predicted && result.confusion[label][predicted] > 0)
        pairs.push_back({result.confusion[label][predicted], label, predicted});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.empty()) return;
  fmt::print("\n  most confused\n");
  for (size_t i = 0; i < std::min<size_t>(pairs.size(), 5); ++i)
    fmt::print("  {:>6}  {} called {}\n", pairs[i].count, settings.classes[pairs[i].label],
               settings.classes[pairs[i].predicted]);
}

}  // namespace

void print_result(const PredictionSettings& settings, const PredictionResult& result, double seconds) {
  std::string speed =
      seconds > 0 ? fmt::format("   {:.2f} s, {}/s", seconds, with_commas(int64_t(double(result.samples) / seconds)))
                  : "";
  if (settings.task == Task::kNumber)
    fmt::print("  {} inputs   mean absolute error {:.6g}   rmse {:.6g}{}\n", with_commas(result.samples), result.mae,
               result.rmse, speed);
  else if (settings.task == Task::kNone)
    fmt::print("  {} inputs without labels{}\n", with_commas(result.samples), speed);
  else
    fmt::print("  {} inputs   accuracy {:.2f} % ({} right)   loss {:.4f}{}\n", with_commas(result.samples),
               100 * result.accuracy, with_commas(result.correct), result.loss, speed);
  if (result.not_finite > 0)
    fmt::print("  {} answers are NaN or infinite: counted as wrong, left out of the loss\n",
               with_commas(result.not_finite));
  if (!result.per_class.empty()) print_classes(result), print_confusions(settings, result);
}

Json result_json(const PredictionSettings& settings, const PredictionResult& result, double seconds) {
  Json json;
  bool judged = settings.task != Task::kNone, rated = judged && settings.task != Task::kNumber;
  json["samples"] = result.samples;
  json["task"] = task_name(settings.task);
  json["accuracy"] = rated ? Json(result.accuracy) : Json(nullptr);
  json["loss"] = judged && std::isfinite(result.loss) ? Json(result.loss) : Json(nullptr);
  if (settings.task == Task::kNumber) json["mae"] = result.mae, json["rmse"] = result.rmse;
  json["not_finite"] = result.not_finite;
  json["classes"] = settings.classes;
  json["per_class"] = Json::array();
  for (const ClassResult& about : result.per_class)
    json["per_class"].push_back({{"class", about.name},
                                 {"samples", about.samples},
                                 {"correct", about.correct},
                                 {"recall", about.recall},
                                 {"precision", about.precision}});
  json["confusion"] = result.confusion;
  json["seconds"] = seconds;
  json["samples_per_second"] = seconds > 0 ? double(result.samples) / seconds : 0.0;
  return json;
}

}  // namespace netmend::app
