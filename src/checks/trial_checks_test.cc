// Kinds of findings that need a network that has learned something: each is raised where its cause was planted, and not
// on the sound one.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/text.h"
#include "checks/checkup.h"
#include "dataset/relabelled.h"
#include "edits/edit.h"
#include "faults/plant.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::checks {
namespace {

using Data = std::shared_ptr<const dataset::Dataset>;
using findings::Finding;
using findings::Level;

Data some(const std::string& spec, int64_t count) {
  Data whole = dataset::open(spec);
  return dataset::subset(whole, stream::spread(whole->size(), count));
}
Data tests() {
  static const Data data = some("glyphs:test", 1500);
  return data;
}
/// Small gains need many inputs to be told from chance.
Data all_tests() {
  static const Data data = dataset::open("glyphs:test");
  return data;
}
Data training() {
  static const Data data = some("glyphs:train", 6000);
  return data;
}

model::Graph learn(int64_t epochs) {
  training::Task task{"sound", zoo::make("lenet5", {.seed = 2}), {}, training(), nullptr, {}};
  task.output = task.graph.outputs[0];
  task.options.epochs = epochs, task.options.rate = 0.003, task.options.batch = 32;
  training::Trainer trainer(std::move(task));
  while (!trainer.done()) trainer.run_epoch();
  return trainer.result();
}
const model::Graph& sound() {
  static const model::Graph graph = learn(4);
  return graph;
}

std::vector<Finding> check(const model::Graph& graph, Data test, Data train = nullptr) {
  session::Request request;
  request.model = "m.onnx", request.quiet = true, request.budget = "quick";
  session::Session session(request, "m.onnx", graph, std::move(test), std::move(train));
  CheckupRequest how;
  how.anyway = true;  // a damaged network may look like wrong preprocessing
  return check_up(session, how).results.findings;
}

const Finding* find(const std::vector<Finding>& found, const std::string& kind) {
  for (const Finding& one : found) {
    if (one.kind == kind) return &one;
    for (const std::string& id : one.related)
      if (id.substr(0, id.find(':')) == kind) return &one;
  }
  return nullptr;
}

std::string told(const std::vector<Finding>& found) {
  std::string text;
  for (const Finding& one : found) text += level_name(one.level) + " " + one.id() + " (" + one.evidence + "); ";
  return text;
}

TEST(SlowTrialChecks, SayNothingSeriousAboutASoundNetwork) {
  const auto found = check(sound(), tests(), training());
  for (const Finding& one : found) EXPECT_LT(one.level, Level::kSerious) << told(found);
  for (const char* kind : {"suspicious-unit", "damaged-layer", "under-trained", "shifted-biases", "mislabelled",
                           "failure-cluster", "untested-units", "untested-region"})
    EXPECT_EQ(find(found, kind), nullptr) << told(found);
}

double accuracy(const model::Graph& graph) {
  stream::Subject subject("m.onnx", graph, tests(), {graph.outputs[0]});
  dataset::Batch batch = tests()->read(stream::spread(tests()->size(), 512));
  return (stream::run_few(subject, {graph.outputs[0]}, batch)[0].argmax(1) == batch.labels)
      .to(at::kDouble)
      .mean()
      .item<double>();
}

TEST(SlowTrialChecks, NameADamagedUnit) {
  model::Graph graph;
  faults::Fault fault;
  for (uint64_t seed = 1; seed < 100; ++seed) {  // many damaged units cost nothing, and then there is nothing to find
    graph = sound();
    auto layers = executor::find_layers(graph);
    fault = faults::plant(graph, layers, faults::find_kind("random-weights"), {.seed = seed});
    edits::apply(graph, fault.edits);
    if (accuracy(sound()) - accuracy(graph) > 0.06) break;
  }
  const auto found = check(graph, tests());
  const Finding* one = find(found, "suspicious-unit");
  ASSERT_NE(one, nullptr) << told(found);
  EXPECT_EQ(one->where, fault.units[0]);
  EXPECT_EQ(one->next[0], "netmend repair m.onnx --unit " + fault.units[0] + " -o fixed.onnx");
  // The headline names the place and what refitting it does, by the numbers that were measured.
  const int64_t fixed = one->numbers["fixed"], broken = one->numbers["broken"];
  EXPECT_TRUE(one->title.starts_with("Unit " + fault.units[0] + " causes ")) << one->title;
  EXPECT_NE(one->title.find(fmt::format(" fixes {} and breaks {} of ", with_commas(fixed), with_commas(broken))),
            std::string::npos)
      << one->title;
}

TEST(SlowTrialChecks, NameAUnitOfTheOppositeSignOrScale) {
  const auto layers = executor::find_layers(sound());
  for (const auto& [kind, factor] :
       std::vector<std::pair<const char*, double>>{{"sign-flipped", -1}, {"scaled", 0.1}}) {
    model::Graph graph;
    faults::Fault fault;
    for (uint64_t seed = 1; seed < 200; ++seed) {
      graph = sound();
      fault = faults::plant(graph, layers, faults::find_kind(kind), {.seed = seed});
      edits::apply(graph, fault.edits);
      if (accuracy(sound()) - accuracy(graph) > 0.06) break;
    }
    const auto found = check(graph, all_tests());
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].id(), "suspicious-unit:" + fault.units[0]) << told(found);
    if (!found[0].numbers.contains("factor")) continue;  // refitting it does better still
    EXPECT_EQ(found[0].numbers["factor"].get<double>() < 0, factor < 0) << told(found);
  }
}

TEST(SlowTrialChecks, NameABiasThatStandsApart) {
  model::Graph graph;
  std::string unit;
  const auto layers = executor::find_layers(sound());
  for (uint64_t seed = 1; seed < 100; ++seed) {
    graph = sound();
    const faults::Fault fault = faults::plant(graph, layers, faults::find_kind("saturated"), {.seed = seed});
    edits::apply(graph, fault.edits);
    unit = fault.units[0];
    if (accuracy(sound()) - accuracy(graph) > 0.06) break;
  }
  const auto found = check(graph, tests());
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id(), "suspicious-unit:" + unit) << told(found);
  EXPECT_TRUE(found[0].numbers.contains("bias")) << told(found);
  EXPECT_EQ(found[0].evidence.find("The bias of " + unit + " is "), 0u) << told(found);
}

TEST(SlowTrialChecks, NameUnitsThatBiasesSilence) {
  model::Graph graph = sound();
  const auto layers = executor::find_layers(graph);
  const model::Layer& layer = layers[layers.size() - 2];
  at::Tensor bias = graph.constant(layer.bias).clone();
  bias.view(-1).narrow(0, 0, bias.numel() * 2 / 3).fill_(-1e4);
  graph.replace(layer.bias, bias);
  ASSERT_GT(accuracy(sound()) - accuracy(graph), 0.03);
  const auto found = check(graph, tests());
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].id(), "dead-units:" + layer.name) << told(found);
  EXPECT_EQ(found[0].level, Level::kSerious);
}

TEST(SlowTrialChecks, NameADamagedLayer) {
  model::Graph graph = sound();
  auto layers = executor::find_layers(graph);
  // Of an early layer one refitted unit can make up for the rest, and is named instead.
  const std::string layer = layers[layers.size() - 2].name;
  edits::apply(
      graph,
      faults::plant(graph, layers, faults::find_kind("layer-noise"), {.strength = 2, .layer = layer, .seed = 3}).edits);
  const auto found = check(graph, all_tests());
  const Finding* one = find(found, "damaged-layer");
  ASSERT_NE(one, nullptr) << told(found);
  EXPECT_EQ(one->where, layer) << told(found);
}

TEST(SlowTrialChecks, NameALayerWhoseWeightsWereMultiplied) {
  const auto layers = executor::find_layers(sound());
  model::Graph graph;
  const model::Layer* damaged = nullptr;
  double planted = 0;
  for (size_t l = 0; l + 1 < layers.size() && !damaged; ++l)  // many factors cost nothing
    for (double factor : {8.0, 0.12}) {
      model::Graph one = sound();
      one.replace(layers[l].weight, one.constant(layers[l].weight) * factor);
      if (accuracy(sound()) - accuracy(one) < 0.05) continue;
      graph = std::move(one), damaged = &layers[l], planted = factor;
      break;
    }
  ASSERT_NE(damaged, nullptr);
  const auto found = check(graph, all_tests());
  const Finding* one = find(found, "damaged-layer");
  ASSERT_NE(one, nullptr) << planted << " " << told(found);
  EXPECT_EQ(one->where, damaged->name) << planted << " " << told(found);
  ASSERT_TRUE(one->numbers.contains("factor")) << told(found);
  EXPECT_NEAR(std::log(one->numbers["factor"].get<double>() / planted), 0, 0.7) << one->title;
  EXPECT_EQ(one->evidence.find("A factor of "), 0u) << "nothing was refitted: " << one->evidence;
}

TEST(SlowTrialChecks, NameBothOfTwoDamagedUnits) {
  model::Graph graph = sound();
  const auto layers = executor::find_layers(graph);
  std::vector<std::string> units;
  for (uint64_t seed = 1; seed < 100 && units.size() < 2; ++seed) {
    model::Graph alone = sound();
    const faults::Fault fault = faults::plant(alone, layers, faults::find_kind("random-weights"), {.seed = seed});
    edits::apply(alone, fault.edits);
    if (accuracy(sound()) - accuracy(alone) < 0.04 || (!units.empty() && units[0] == fault.units[0])) continue;
    edits::apply(graph, fault.edits);
    units.push_back(fault.units[0]);
  }
  ASSERT_EQ(units.size(), 2u);
  const auto found = check(graph, all_tests());
  std::vector<std::string> named;
  for (const Finding& one : found)
    if (one.kind == "suspicious-unit") named.push_back(one.where);
  std::sort(named.begin(), named.end()), std::sort(units.begin(), units.end());
  EXPECT_EQ(named, units) << told(found);
}

TEST(SlowTrialChecks, NameTrainingThatStoppedEarly) {
  const auto found = check(learn(1), all_tests());
  EXPECT_EQ(find(found, "suspicious-unit"), nullptr) << told(found);
  EXPECT_NE(find(found, "under-trained"), nullptr) << told(found);
}

TEST(SlowTrialChecks, NameBiasesThatAreOff) {
  model::Graph graph = sound();
  auto layers = executor::find_layers(graph);
  at::Tensor bias = graph.constant(layers.back().bias).clone();
  bias[3] += float(4 * stream::run_few(stream::Subject("m.onnx", graph, tests(), {graph.outputs[0]}),
                                       {graph.outputs[0]}, tests()->read(stream::spread(tests()->size(), 64)))[0]
                           .std()
                           .item<double>());
  graph.replace(layers.back().bias, bias);
  const auto found = check(graph, tests());
  ASSERT_NE(find(found, "shifted-biases"), nullptr) << told(found);
}

TEST(SlowTrialChecks, NameWrongLabelsAndBunchesOfFailures) {
  std::vector<int64_t> labels = dataset::read_labels(*tests());
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == 4 && Random(8, i).uniform() < 0.5) labels[i] = 9;
  Data wrong = dataset::relabelled(tests(), labels);
  const auto found = check(sound(), wrong);
  EXPECT_NE(find(found, "mislabelled"), nullptr) << told(found);
  for (int64_t& label : labels)
    if (label == 4) label = 9;
  Data all = dataset::relabelled(tests(), labels);
  EXPECT_NE(find(check(sound(), all), "failure-cluster"), nullptr);
}

TEST(SlowTrialChecks, NameWhatTestsNeverShow) {
  const std::vector<int64_t> labels = dataset::read_labels(*tests());
  std::vector<int64_t> few;
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < 5) few.push_back(int64_t(i));
  const auto found = check(sound(), dataset::subset(tests(), few), training());
  EXPECT_TRUE(find(found, "untested-units") || find(found, "untested-region")) << told(found);
}

TEST(SlowTrialChecks, NameChangesThatNobodyWouldMind) {
  const auto found = check(sound(), tests());
  EXPECT_EQ(find(found, "not-robust"), nullptr) << told(found);
  model::Graph graph = sound();
  auto layers = executor::find_layers(graph);
  edits::apply(graph, faults::plant(graph, layers, faults::find_kind("layer-noise"),
                                    {.strength = 2, .layer = layers[0].name, .seed = 3})
                          .edits);
  const auto shaken = check(graph, tests());
  EXPECT_NE(find(shaken, "not-robust"), nullptr) << told(shaken);
}

}  // namespace
}  // namespace netmend::checks
