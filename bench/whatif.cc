#include "whatif.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "base/random.h"
#include "edits/operations.h"
#include "edits/places.h"
#include "executor/runtime.h"
#include "mutants/judged.h"
#include "onnx/reader.h"
#include "stream/layers.h"
#include "whatif/whatif.h"

namespace netmend::bench {
std::string device = "cpu";

namespace {

using Clock = std::chrono::steady_clock;

struct Bench {
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;
};

Bench open(const std::string& path, const std::string& spec, int64_t limit) {
  model::Graph graph = onnx::read_model(path);
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  std::shared_ptr<const dataset::Dataset> data = dataset::open(spec);
  if (limit > 0) data = dataset::subset(data, stream::spread(data->size(), limit));
  stream::Subject subject(path, std::move(graph), data, {head.output, head.logits}, at::Device(device));
  dataset::Batch few = data->read(stream::spread(data->size(), 64));
  auto settings =
      observers::infer_task(subject.graph, head, data->info(), few, stream::run_few(subject, {head.output}, few)[0]);
  Bench out{std::move(subject), std::move(settings), {}};
  out.layers = stream::find_layers(out.subject);
  return out;
}

double pass_seconds(const Bench& at, int jobs) {
  observers::Predictions predictions(at.settings, false);
  stream::PassOptions options;
  options.jobs = jobs, options.quiet = true;
  auto start = Clock::now();
  stream::run_pass(at.subject, {&predictions}, options);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double ask_seconds(whatif::WhatIf& whatif, const Bench& at, const std::vector<whatif::Question>& questions) {
  auto start = Clock::now();
  whatif::tally(whatif, at.settings, questions);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Multiply-adds of each layer for one input.
std::vector<double> work_of(const Bench& at) {
  std::vector<double> work;
  executor::Request request;
  for (const model::Layer& layer : at.layers) request.wanted.push_back(layer.pre);
  at::NoGradGuard no_grad;
  auto values = executor::Executor(at.subject.batching.graph, request)
                    .run(at.subject.feed.inputs(at.subject.data->read(stream::spread(at.subject.data->size(), 2))));
  for (size_t l = 0; l < at.layers.size(); ++l)
    work.push_back(double(values[l].numel()) / 2 *
                   double(at.subject.graph.constant(at.layers[l].weight).numel() / at.layers[l].units));
  return work;
}

}  // namespace

nlohmann::json whatif(const std::string& model, const std::string& data, int64_t limit, int count, int jobs) {
  Bench at = open(model, data, limit);
  const size_t first = count > 0 ? at.layers.size() - std::min(at.layers.size(), size_t(count)) : 0;
  std::vector<double> work = work_of(at);
  double all = 0, bound = 0;
  for (double one : work) all += one;
  std::vector<whatif::Question> questions;
  nlohmann::json by_layer;
  whatif::WhatIf whatif(at.subject, at.settings, at.layers, {.jobs = jobs});
  for (size_t l = first; l < at.layers.size(); ++l) {
    std::vector<whatif::Question> own;
    const auto units = double(at.layers[l].units);
    double rest = 0;
    for (size_t after = l + 2; after < work.size(); ++after) rest += work[after];
    bound += work[l] + (l + 1 < work.size() ? work[l + 1] : 0) + units * rest;
    for (int64_t unit = 0; unit < at.layers[l].units; ++unit)
      own.push_back({edits::operate(at.subject.graph, at.layers[l], unit,
                                    {edits::Target::kWeights, edits::Change::kScaleGaussEach, 1}, 7)});
    questions.insert(questions.end(), own.begin(), own.end());
  }
  const double pass = pass_seconds(at, jobs), spent = ask_seconds(whatif, at, questions);
  return {{"edits", questions.size()},
          {"inputs", at.subject.data->size()},
          {"pass", pass},
          {"seconds", spent},
          {"ratio", pass * double(questions.size()) / spent},
          {"operations_allow", all * double(questions.size()) / (bound + all)},
          {"memory", executor::memory_peak()}};
}

nlohmann::json patches(const std::string& model, const std::string& data, int64_t limit, int weights, int count,
                       int jobs) {
  Bench at = open(model, data, limit);
  Random random(5);
  std::vector<whatif::Question> questions;
  std::vector<std::pair<model::ValueId, std::vector<int64_t>>> places;
  for (size_t l = at.layers.size() - 2; l < at.layers.size(); ++l) {
    model::ValueId id = at.layers[l].weight;
    std::set<int64_t> some;
    while (int(some.size()) < weights / 2)
      some.insert(int64_t(random.below(uint64_t(at.subject.graph.constant(id).numel()))));
    places.emplace_back(id, std::vector<int64_t>(some.begin(), some.end()));
  }
  for (int p = 0; p < count; ++p) {
    whatif::Question question;
    for (const auto& [id, positions] : places) {
      std::vector<double> values;
      for (size_t i = 0; i < positions.size(); ++i) values.push_back(0.1 * random.normal());
      for (edits::Edit& edit : edits::cut(at.subject.graph, id, positions, values, "")) question.edits.push_back(edit);
    }
    questions.push_back(std::move(question));
  }
  whatif::WhatIf whatif(at.subject, at.settings, at.layers, {.jobs = jobs, .keep = true});
  whatif::tally(whatif, at.settings, std::vector<whatif::Question>(questions.begin(), questions.begin() + 1));
  const double pass = pass_seconds(at, jobs), spent = ask_seconds(whatif, at, questions);
  return {{"edits", questions.size()},
          {"pass", pass},
          {"seconds", spent},
          {"kept", whatif.kept_bytes()},
          {"ratio", pass * double(questions.size()) / spent}};
}

nlohmann::json mutants(const std::string& model, const std::string& data, int64_t limit, int count,
                       const std::string& operators, int jobs) {
  Bench at = open(model, data, limit);
  auto start = Clock::now();
  mutants::Generation how;
  how.operators = mutants::find_operators(operators), how.sample = count;
  const std::vector<mutants::Mutant> list = mutants::generate(at.subject, at.layers, at.settings, how).list;
  const double generating = std::chrono::duration<double>(Clock::now() - start).count();
  const double pass = std::min(pass_seconds(at, jobs), pass_seconds(at, jobs));
  start = Clock::now();
  mutants::judge(at.subject, at.settings, at.layers, list, mutants::Kill::kClass, jobs);
  const double spent = std::chrono::duration<double>(Clock::now() - start).count();
  return {{"mutants", list.size()},   {"inputs", at.subject.data->size()},
          {"generating", generating}, {"pass", pass},
          {"seconds", spent},         {"ratio", pass * double(list.size()) / spent}};
}

}  // namespace netmend::bench
