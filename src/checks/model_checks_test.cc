// Each kind of finding about graph, weights, units and predictions: a case that raises it, and a sound one that must
// not.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "checks/calibration.h"
#include "checks/predictions_for_test.h"
#include "executor/layers.h"
#include "stream/layers.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using observers::SampleRow;

session::Session alone(model::Graph graph) {
  return session::Session(typed_request(), "model.onnx", std::move(graph), nullptr);
}

Results look(const model::Graph& graph) {
  session::Session session = alone(graph);
  Observed seen = observe_model(session);
  Results found;
  run_rows(seen, found,
           {"unused-weights", "double-softmax", "nonlinearity", "running-statistics", "finite-weights",
            "duplicate-weights", "weight-outliers", "zero-units", "duplicate-units", "untrained-layers"});
  return found;
}

/// A dense network whose weights have moved as training moves them.
model::Graph trained(const std::string& name = "mlp:784-64-64-64-10") {
  model::Graph graph = zoo::make(name, {.seed = 3});
  for (model::ValueId id : executor::find_parameters(graph)) {
    at::Tensor value = graph.constant(id).clone();
    Random random(5, uint64_t(id));
    for (int64_t i = 0; i < value.numel(); ++i) value.data_ptr<float>()[i] += 0.02f * float(random.normal());
    graph.replace(id, value);
  }
  return graph;
}

std::vector<model::Layer> layers_of(const model::Graph& graph) { return executor::find_layers(graph); }

template <typename Change>
void rewrite(model::Graph& graph, model::ValueId id, const Change& change) {
  at::Tensor value = graph.constant(id).clone();
  change(value);
  graph.replace(id, value);
}

TEST(ModelChecks, SaysNothingAboutSoundNetworks) {
  for (const char* name : {"mlp:784-64-64-64-10", "lenet5", "cifar-convnet"}) {
    Results found = look(trained(name));
    EXPECT_TRUE(found.findings.empty()) << name << ": " << (found.findings.empty() ? "" : found.findings[0].id());
    EXPECT_FALSE(found.passed.empty());
  }
}

TEST(ModelChecks, NamesWhatReachesNoOutput) {
  model::Graph graph = trained();
  model::Node node = graph.nodes[0];
  node.name = "forgotten", node.outputs = {graph.add_value("nowhere", model::Element::kFloat)};
  graph.nodes.push_back(node);
  EXPECT_TRUE(raises(look(graph), "unused-weights"));
}

TEST(ModelChecks, NamesSoftmaxOfSoftmax) {
  model::Graph graph = trained();
  for (int i : {1, 2}) {
    model::Node node;
    node.op = "Softmax", node.name = "softmax" + std::to_string(i), node.opset = 17;
    node.inputs = {graph.outputs[0]}, node.outputs = {graph.add_value("p" + std::to_string(i), model::Element::kFloat)};
    graph.nodes.push_back(node);
    graph.outputs[0] = node.outputs[0];
    EXPECT_EQ(raises(look(graph), "double-softmax"), i == 2);
  }
}

TEST(ModelChecks, NamesLayersWithNothingBetween) {
  model::Graph graph = trained();
  int replaced = 0;
  for (model::Node& node : graph.nodes)
    if (node.op == "Relu" && ++replaced == 2) node.op = "Identity";
  Results found = look(graph);
  EXPECT_TRUE(raises(found, "linear-pair"));
  EXPECT_FALSE(raises(found, "linear-network"));
  for (model::Node& node : graph.nodes)
    if (node.op == "Relu") node.op = "Identity";
  EXPECT_TRUE(raises(look(graph), "linear-network"));
}

TEST(ModelChecks, NamesNormsThatRememberNothing) {
  EXPECT_TRUE(raises(look(zoo::make("resnet20", {.seed = 1})), "stale-running-statistics"));
  model::Graph graph = zoo::make("resnet20", {.seed = 1});
  for (const model::Node& node : graph.nodes)
    if (node.op == "BatchNormalization") rewrite(graph, node.inputs[3], [](at::Tensor& mean) { mean.add_(0.1); });
  EXPECT_FALSE(raises(look(graph), "stale-running-statistics"));
}

TEST(ModelChecks, NamesWeightsThatAreNoNumbers) {
  model::Graph graph = trained();
  rewrite(graph, layers_of(graph)[1].weight, [](at::Tensor& w) { w.view(-1)[7] = NAN; });
  Results found = look(graph);
  ASSERT_TRUE(raises(found, "non-finite-weights:" + layers_of(graph)[1].name));
  EXPECT_EQ(found.findings[0].level, findings::Level::kBlocker);
}

TEST(ModelChecks, NamesCopiesOutliersAndEmptyUnits) {
  model::Graph graph = trained();
  auto layers = layers_of(graph);
  graph.replace(layers[2].weight, graph.constant(layers[1].weight));
  EXPECT_TRUE(raises(look(graph), "duplicate-weights"));
  graph = trained();
  rewrite(graph, layers[1].weight, [](at::Tensor& w) { w.view(-1)[100] = 40; });
  EXPECT_TRUE(raises(look(graph), "extreme-weights:" + layers[1].name));
  graph = trained();
  const int64_t axis = graph.constant(layers[1].weight).size(0) == 64 ? 0 : 1;
  rewrite(graph, layers[1].weight, [&](at::Tensor& w) {
    w.select(layers[1].weight == layers[1].weight_input ? layers[1].weight_axis : axis, 5).zero_();
  });
  EXPECT_TRUE(raises(look(graph), "zero-units:" + layers[1].name));
}

TEST(ModelChecks, NamesAFilterOfEightTimesTheNoiseAndNoLongTails) {
  for (const char* zoo : {"lenet5", "mlp:784-64-64-64-10"}) {
    EXPECT_FALSE(raises(look(trained(zoo)), "extreme-weights")) << zoo;
    for (size_t l : {0, 1}) {
      model::Graph graph = trained(zoo);
      const model::Layer layer = layers_of(graph)[l];
      rewrite(graph, layer.weight, [&](at::Tensor& w) {
        at::manual_seed(3);
        const int64_t axis = layer.weight == layer.weight_input ? layer.weight_axis : w.size(0) == layer.units ? 0 : 1;
        at::Tensor unit = w.select(axis, 2);
        unit.copy_(8 * w.std() * at::randn_like(unit));
      });
      const Results found = look(graph);
      EXPECT_TRUE(raises(found, "extreme-weights:" + layer.name)) << zoo << " " << layer.name;
    }
  }
  // Units whose sizes scatter, and weights with the tails of a few degrees of freedom, as attention has them.
  model::Graph graph = trained();
  const model::Layer layer = layers_of(graph)[1];
  rewrite(graph, layer.weight, [](at::Tensor& w) {
    at::manual_seed(5);
    at::Tensor scale = (0.5 * at::randn({w.size(0), 1})).exp();
    w.copy_(0.05 * scale * at::randn_like(w) / (at::randn({3, w.size(0), w.size(1)}).square().mean(0)).sqrt());
  });
  EXPECT_FALSE(raises(look(graph), "extreme-weights")) << said(look(graph).findings);
}

TEST(ModelChecks, NamesUnitsThatAreAllAlike) {
  model::Graph graph = trained("lenet5");
  auto layers = layers_of(graph);
  rewrite(graph, layers[1].weight, [](at::Tensor& w) { w.narrow(0, 0, 8).copy_(w[0].expand_as(w.narrow(0, 0, 8))); });
  EXPECT_TRUE(raises(look(graph), "duplicate-units:" + layers[1].name));
}

TEST(ModelChecks, NamesALayerThatNeverMoved) {
  model::Graph graph = trained(), fresh = zoo::make("mlp:784-64-64-64-10", {.seed = 3});
  auto layers = layers_of(graph);
  graph.replace(layers[1].weight, fresh.constant(layers[1].weight));
  graph.replace(layers[1].bias, fresh.constant(layers[1].bias));
  EXPECT_TRUE(raises(look(graph), "untrained-layer:" + layers[1].name));
  // Where nothing has moved, it is a fresh network, and every layer is as it should be.
  EXPECT_FALSE(raises(look(fresh), "untrained-layer"));
}

/// What a network does with real inputs.
struct Examined {
  session::Session session;
  Observed seen;
  Results found;

  explicit Examined(model::Graph graph)
      : session(typed_request(), "model.onnx", std::move(graph), some_tests()),
        seen(observe(session, nullptr, kWatchPredictions | kWatchUnits)) {
    run_rows(seen, found, {"constant-layers", "dead-units", "saturated-units", "activation-range"});
  }
  static std::shared_ptr<const dataset::Dataset> some_tests() {
    std::shared_ptr<const dataset::Dataset> all = dataset::open("glyphs:test");
    return dataset::subset(all, stream::spread(all->size(), 256));
  }
};

TEST(UnitChecks, NameDeadUnitsAndNotAFew) {
  EXPECT_TRUE(Examined(trained("lenet5")).found.findings.empty());
  model::Graph graph = trained("lenet5");
  auto layers = layers_of(graph);
  rewrite(graph, layers[2].bias, [](at::Tensor& b) { b.narrow(0, 0, 60).fill_(-1e3); });
  EXPECT_TRUE(raises(Examined(graph).found, "dead-units:" + layers[2].name));
}

TEST(UnitChecks, DeadUnitsThatCostNothingAreANote) {
  model::Graph graph = trained("lenet5");
  const model::Layer layer = layers_of(graph)[2];
  const std::string id = "dead-units:" + layer.name;
  struct Case {
    int64_t dead;
    double linear;  ///< below 0: unknown
    findings::Level level;
  };
  using findings::Level;
  for (const Case& one : {Case{60, 0.86, Level::kNote}, Case{60, 0.96, Level::kSerious}, Case{90, -1, Level::kMinor},
                          Case{30, -1, Level::kNote}, Case{115, -1, Level::kSerious}, Case{115, 0.86, Level::kMinor}}) {
    model::Graph dead = graph;
    rewrite(dead, layer.bias, [&](at::Tensor& b) { b.narrow(0, 0, one.dead).fill_(-1e3); });
    Examined examined(dead);
    examined.seen.simple_tried = true;
    if (one.linear >= 0) examined.seen.simple = linear_model_of(one.linear);
    examined.seen.test->result.accuracy = 0.93;
    Results found;
    run_rows(examined.seen, found, {"dead-units"});
    EXPECT_EQ(raised(found, id).level, one.level) << one.dead << " " << one.linear;
  }
}

TEST(UnitChecks, NameTheFirstBlindLayerAlone) {
  model::Graph graph = trained("lenet5");
  auto layers = layers_of(graph);
  rewrite(graph, layers[2].bias, [](at::Tensor& b) { b.fill_(-1e3); });
  Results found = Examined(graph).found;
  EXPECT_TRUE(raises(found, "constant-layer:" + layers[2].name));
  EXPECT_FALSE(raises(found, "constant-layer:" + layers[3].name));
}

TEST(UnitChecks, NameValuesThatRunAway) {
  model::Graph graph = trained("lenet5");
  auto layers = layers_of(graph);
  rewrite(graph, layers[1].weight, [](at::Tensor& w) { w.mul_(1e6); });
  Results found = Examined(graph).found;
  EXPECT_TRUE(raises(found, "exploding-activations:" + layers[1].name));
  EXPECT_FALSE(raises(found, "exploding-activations:" + layers[2].name));
}

TEST(UnitChecks, NameUnitsAtTheirLimit) {
  model::Graph graph = trained("mlp:784-64-64-64-10");
  for (model::Node& node : graph.nodes)
    if (node.op == "Relu") node.op = "Tanh";
  EXPECT_FALSE(raises(Examined(graph).found, "saturated-units"));
  rewrite(graph, layers_of(graph)[1].bias, [](at::Tensor& b) { b.narrow(0, 0, 40).fill_(50); });
  EXPECT_TRUE(raises(Examined(graph).found, "saturated-units:" + layers_of(graph)[1].name));
}

TEST(UnitChecks, NameUnitsThatFlipBetweenTheirLimits) {
  model::Graph graph = trained("mlp:784-64-64-64-10");
  for (model::Node& node : graph.nodes)
    if (node.op == "Relu") node.op = "Tanh";
  rewrite(graph, layers_of(graph)[1].weight, [](at::Tensor& w) { w.mul_(1000); });
  const Results found = Examined(graph).found;
  EXPECT_TRUE(raises(found, "saturated-units:" + layers_of(graph)[1].name));
  EXPECT_FALSE(raises(found, "saturated-units:" + layers_of(graph)[0].name));
}

TEST(PredictionChecks, SayNothingAboveANoteAboutSoundAnswers) {
  Answered sound;
  sound.test = sound.part(spread_mistakes, well_calibrated);
  sound.train = sound.part([](int64_t c, int64_t i) { return i < 4 ? (c + 1 + i) % 10 : c; }, well_calibrated);
  Results& found = sound.look();
  EXPECT_TRUE(found.findings.empty()) << found.findings[0].id();
  EXPECT_GE(found.passed.size(), 5u);
}

TEST(PredictionChecks, TellOneSidedConfusionsFromLookAlikes) {
  Answered one_sided, alike;
  one_sided.test = one_sided.part([](int64_t c, int64_t i) { return c == 3 && i < 45 ? 5 : spread_mistakes(c, i); },
                                  well_calibrated);
  Results& found = one_sided.look();
  ASSERT_TRUE(raises(found, "confused-classes:c3-c5"));
  for (const Finding& one : found.findings)
    if (one.kind == "confused-classes") {
      EXPECT_EQ(one.level, findings::Level::kSerious);
    }
  alike.test = alike.part(
      [](int64_t c, int64_t i) { return c == 3 && i < 25   ? 5
                                        : c == 5 && i < 25 ? 3
                                                           : spread_mistakes(c, i); },
      well_calibrated);
  for (const Finding& one : alike.look().findings) EXPECT_LE(one.level, findings::Level::kMinor) << one.id();
}

TEST(PredictionChecks, NameWeakAndSilentClasses) {
  Answered weak, silent;
  weak.test =
      weak.part([](int64_t c, int64_t i) { return c == 2 && i < 70 ? (2 + 1 + i % 9) % 10 : spread_mistakes(c, i); },
                well_calibrated);
  EXPECT_TRUE(raises(weak.look(), "weak-class:c2"));
  silent.test = silent.part(
      [](int64_t c, int64_t i) {
        const int64_t s = spread_mistakes(c, i);
        return s == 4 ? (c + 3) % 10 == 4 ? 5 : (c + 3) % 10 : s;
      },
      well_calibrated);
  EXPECT_TRUE(raises(silent.look(), "never-predicted:c4"));
}

TEST(PredictionChecks, NameGuessing) {
  Answered guess;
  guess.test = guess.part([](int64_t, int64_t) { return int64_t(0); }, well_calibrated);
  Results& found = guess.look();
  EXPECT_TRUE(raises(found, "no-better-than-baseline"));
  EXPECT_EQ(found.findings.size(), 1u);  // what it confuses then says nothing
}

TEST(PredictionChecks, NameConfidenceThatIsOff) {
  Answered over, under;
  over.test = over.part(spread_mistakes, [](const SampleRow&) { return 0.995; });
  EXPECT_TRUE(raises(over.look(), "over-confident"));
  under.test = under.part(spread_mistakes, [](const SampleRow&) { return 0.4; });
  EXPECT_TRUE(raises(under.look(), "under-confident"));
  const Calibration all = calibration(under.part(spread_mistakes, well_calibrated).rows);
  EXPECT_LT(all.ece, 0.25);
}

TEST(PredictionChecks, NameAMetricThatHidesClasses) {
  Answered hidden;
  std::vector<int64_t> sizes(10, 20);
  sizes[0] = 5000;
  hidden.test =
      hidden.part([](int64_t c, int64_t i) { return c == 0   ? i % 30 == 0 ? 1 + i % 9 : 0
                                                    : i < 12 ? int64_t(0)
                                                             : c; },
                  well_calibrated, sizes);
  EXPECT_TRUE(raises(hidden.look(), "misleading-metric"));
}

TEST(PredictionChecks, NameOverFitting) {
  Answered fit;
  fit.test = fit.part([](int64_t c, int64_t i) { return i < 30 ? (c + 1 + i % 9) % 10 : c; },
                      [](const SampleRow&) { return 0.7; });
  fit.train = fit.part([](int64_t c, int64_t) { return c; }, well_calibrated);
  EXPECT_TRUE(raises(fit.look(), "over-fit"));
}

TEST(PredictionChecks, NameAnswersThatAreNoNumbers) {
  Answered broken;
  broken.test = broken.part(spread_mistakes, well_calibrated);
  broken.test.result.not_finite = 3;
  EXPECT_TRUE(raises(broken.look(), "non-finite-predictions"));
}

Results numbers(const std::function<double(double truth, int64_t i)>& answer) {
  Answered all;
  all.settings.task = observers::Task::kNumber, all.settings.metric = "mae", all.settings.classes.clear();
  all.test.name = "test";
  Random random(9);
  for (int64_t i = 0; i < 500; ++i) {
    SampleRow row;
    row.sample = i, row.label = random.normal() * 3, row.predicted = answer(row.label, i);
    all.test.rows.push_back(row);
  }
  all.test.result.samples = 500;
  return all.look();
}

TEST(PredictionChecks, NameNumbersThatAreBiasedClippedOrConstant) {
  auto noise = [](int64_t i) { return 0.2 * Random(4, uint64_t(i)).normal(); };
  EXPECT_TRUE(numbers([&](double t, int64_t i) { return t + noise(i); }).findings.empty());
  EXPECT_TRUE(raises(numbers([&](double t, int64_t i) { return t + 2 + noise(i); }), "biased-numbers"));
  EXPECT_TRUE(
      raises(numbers([&](double t, int64_t i) { return std::max(0.0, t + noise(i)); }), "clipped-numbers:below"));
  EXPECT_TRUE(raises(numbers([&](double, int64_t i) { return 0.1 + 0.001 * noise(i); }), "constant-predictions"));
}

}  // namespace
}  // namespace netmend::checks
