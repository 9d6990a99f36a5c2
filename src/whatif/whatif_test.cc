#include "whatif/whatif.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "edits/operations.h"
#include "stream/layers.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::whatif {
namespace {

struct Fixture {
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;
};

Fixture make(model::Graph graph, const std::string& data, int64_t inputs) {
  std::shared_ptr<const dataset::Dataset> whole = dataset::open(data);
  std::shared_ptr<const dataset::Dataset> source = dataset::subset(whole, stream::spread(whole->size(), inputs));
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  stream::Subject subject("network", graph, source, {head.output, head.logits});
  dataset::Batch few = source->read(stream::spread(source->size(), 8));
  at::Tensor output = stream::run_few(subject, {head.output}, few)[0];
  auto settings = observers::infer_task(graph, head, source->info(), few, output);
  Fixture out{std::move(subject), std::move(settings), {}};
  out.layers = stream::find_layers(out.subject);
  return out;
}

/// The slow twin: the edited network from the start.
std::vector<observers::SampleRow> evaluate(const Fixture& at, const std::vector<edits::Edit>& edits) {
  model::Graph graph = at.subject.graph;
  edits::apply(graph, edits);
  stream::Subject subject("edited", graph, at.subject.data, {at.settings.head.output, at.settings.head.logits});
  observers::Predictions predictions(at.settings, true);
  stream::PassOptions options;
  options.quiet = true;
  auto done = stream::run_pass(subject, {&predictions}, options);
  auto state = done.collected[0].fold(predictions);
  return dynamic_cast<observers::PredictionState&>(*state).rows;
}

void expect_equal(Fixture& at, const std::vector<Question>& questions, Options options = {}) {
  WhatIf whatif(at.subject, at.settings, at.layers, options);
  std::vector<std::vector<Judgement>> found(questions.size());
  whatif.ask(questions, [&](size_t q, int64_t first, std::span<const Judgement> rows) {
    EXPECT_EQ(first, int64_t(found[q].size()));
    found[q].insert(found[q].end(), rows.begin(), rows.end());
  });
  for (size_t q = 0; q < questions.size(); ++q) {
    std::vector<observers::SampleRow> twin = evaluate(at, questions[q].edits);
    ASSERT_EQ(found[q].size(), twin.size());
    double sum = 0, twin_sum = 0;
    int64_t different = 0;
    for (size_t i = 0; i < twin.size(); ++i) {
      sum += found[q][i].loss, twin_sum += twin[i].loss;
      different += found[q][i].predicted != int64_t(twin[i].predicted);
      EXPECT_EQ(found[q][i].right, twin[i].right == 1) << q << " " << i;
    }
    EXPECT_EQ(different, 0) << q << " " << (questions[q].edits.empty() ? "" : questions[q].edits[0].unit);
    EXPECT_NEAR(sum, twin_sum, 1e-5 * std::abs(twin_sum)) << q;
  }
}

/// A few units of every layer, each changed in some way.
std::vector<Question> some_edits(const Fixture& at, int64_t each, uint64_t seed) {
  std::vector<Question> questions(1);
  Random random(seed);
  for (const model::Layer& layer : at.layers)
    for (int64_t i = 0; i < each; ++i) {
      int64_t unit = int64_t(random.below(uint64_t(layer.units)));
      const auto all = edits::operations();
      const edits::NamedOperation& named = all[random.below(all.size())];
      if (named.usual.target == edits::Target::kOutgoing) continue;
      try {
        questions.push_back({edits::operate(at.subject.graph, layer, unit, named.usual, random.bits())});
      } catch (const InputError&) {  // no bias
      }
    }
  return questions;
}

TEST(WhatIf, EqualsAFullEvaluation) {
  for (const char* network : {"lenet5", "lenet1", "dnn1", "dnn2", "cnn1", "cnn2"}) {
    SCOPED_TRACE(network);
    Fixture at = make(zoo::make(network), "glyphs:test", 300);
    WhatIf whatif(at.subject, at.settings, at.layers);
    for (size_t l = 0; l < at.layers.size(); ++l) EXPECT_TRUE(whatif.has_shortcut(int(l))) << at.layers[l].name;
    expect_equal(at, some_edits(at, 4, 5));
  }
}

TEST(WhatIf, EqualsAFullEvaluationOfResidualNetworks) {
  if (!std::getenv("NETMEND_DATA")) GTEST_SKIP() << "needs CIFAR-10 in NETMEND_DATA";
  Fixture at = make(zoo::make("resnet20"), "cifar10:test", 40);
  expect_equal(at, some_edits(at, 1, 6));
}

TEST(WhatIf, BiasesOfQuantisedLayersMayChange) {
  model::Graph graph = zoo::make("mlp:784-16-10");
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    const model::ValueId weight = graph.find(name);
    const at::Tensor whole = (graph.constant(weight) * 100).round().clamp(-127, 127).to(at::kChar);
    const model::ValueId numbers = graph.add_value(std::string(name) + "/whole", model::Element::kInt8),
                         scale = graph.add_value(std::string(name) + "/scale", model::Element::kFloat);
    graph.constants.erase(weight);
    graph.constants[numbers] = {whole, model::Element::kInt8, {}, false};
    graph.constants[scale] = {at::scalar_tensor(0.01f), model::Element::kFloat, {}, false};
    graph.nodes.push_back(
        {std::string(name) + "/as-float", "DequantizeLinear", "", 17, {numbers, scale}, {weight}, {}});
  }
  model::sort_nodes(graph);
  Fixture at = make(std::move(graph), "glyphs:test", 100);
  std::vector<Question> questions(1);
  for (const model::Layer& layer : at.layers)
    questions.push_back(
        {edits::operate(at.subject.graph, layer, 3, {edits::Target::kBias, edits::Change::kSet, 2}, 1)});
  expect_equal(at, questions);
}

TEST(WhatIf, PatchesMayLieInSeveralLayers) {
  Fixture at = make(zoo::make("lenet5"), "glyphs:test", 200);
  Random random(9);
  std::vector<Question> questions;
  for (int round = 0; round < 12; ++round) {
    Question question;
    for (int part = 0; part < 3; ++part) {
      model::ValueId id = at.layers[random.below(at.layers.size())].weight;
      int64_t position = int64_t(random.below(uint64_t(at.subject.graph.constant(id).numel())));
      double value = random.normal();
      for (edits::Edit& edit : edits::cut(at.subject.graph, id, {&position, 1}, {&value, 1}, ""))
        question.edits.push_back(edit);
    }
    question.edits = edits::compact(question.edits);
    questions.push_back(std::move(question));
  }
  expect_equal(at, questions);
  expect_equal(at, questions, {.plain = true});
}

TEST(WhatIf, ABiasOfTheNextLayerCountsToo) {
  Fixture at = make(zoo::make("lenet5"), "glyphs:test", 150);
  std::vector<Question> questions;
  for (size_t l = 0; l + 1 < at.layers.size(); ++l) {
    Question question;
    question.edits =
        edits::operate(at.subject.graph, at.layers[l], 1, {edits::Target::kWeights, edits::Change::kScale, 2}, 1);
    for (auto& edit :
         edits::operate(at.subject.graph, at.layers[l + 1], 0, {edits::Target::kBias, edits::Change::kSet, 3}, 1))
      question.edits.push_back(edit);
    questions.push_back(std::move(question));
  }
  expect_equal(at, questions);
}

/// A norm over units makes each of them depend on all the others.
model::Graph with_layer_norm() {
  zoo::Builder builder("normed", zoo::Scheme::kGlorot, 3);
  model::ValueId x = builder.flatten(builder.input("x", {1, 28, 28}));
  x = builder.dense("fc1", x, 784, 12);
  model::Graph graph = builder.finish(builder.dense("fc2", builder.relu(x), 12, 10), "y", 10);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != "Relu") continue;
    model::ValueId scale = graph.add_value("ln.scale", model::Element::kFloat),
                   shift = graph.add_value("ln.shift", model::Element::kFloat),
                   out = graph.add_value("normed", model::Element::kFloat);
    graph.constants[scale].value = at::linspace(0.5, 1.5, 12),
    graph.constants[shift].value = at::linspace(-0.3, 0.3, 12);
    model::Node norm{"ln",  "LayerNormalization",   "", 17, {graph.nodes[n].inputs[0], scale, shift},
                     {out}, {{"axis", int64_t(-1)}}};
    graph.nodes[n].inputs[0] = out;
    graph.nodes.insert(graph.nodes.begin() + int64_t(n), norm);
    break;
  }
  return graph;
}

TEST(WhatIf, KeepsOffNormsThatMixUnits) {
  Fixture at = make(with_layer_norm(), "glyphs:test", 100);
  EXPECT_FALSE(WhatIf(at.subject, at.settings, at.layers).has_shortcut(0));
  expect_equal(at, some_edits(at, 6, 4));
}

TEST(WhatIf, DamagedUnitsDoNotDrownWhatIsLeft) {
  for (size_t layer = 0; layer < 4; ++layer) {
    model::Graph graph = zoo::make("lenet5");
    Fixture sound = make(graph, "glyphs:test", 10);
    edits::apply(
        graph, edits::operate(graph, sound.layers[layer], 2, {edits::Target::kWeights, edits::Change::kScale, 1e6}, 1));
    Fixture at = make(graph, "glyphs:test", 200);
    std::vector<Question> questions;
    for (double scale : {1e-6, 0.0})
      questions.push_back({edits::operate(at.subject.graph, at.layers[layer], 2,
                                          {edits::Target::kWeights, edits::Change::kScale, scale}, 1)});
    SCOPED_TRACE(layer);
    expect_equal(at, questions);
  }
}

TEST(WhatIf, HoldingAUnitAtZeroIsTakingItsWeightsAway) {
  Fixture at = make(zoo::make("lenet5"), "glyphs:test", 150);
  WhatIf whatif(at.subject, at.settings, at.layers, {.keep = true});
  for (int layer = 0; layer < 4; ++layer) {
    auto all = edits::operate(at.subject.graph, at.layers[size_t(layer)], 1,
                              {edits::Target::kWeights, edits::Change::kSet, 0}, 1);
    for (auto& edit : edits::operate(at.subject.graph, at.layers[size_t(layer)], 1,
                                     {edits::Target::kBias, edits::Change::kSet, 0}, 1))
      all.push_back(edit);
    std::vector<Tally> both = tally(whatif, at.settings, std::vector<Question>{{{}, layer, 1, 0}, {all}});
    EXPECT_EQ(both[0].right, both[1].right);
    EXPECT_NEAR(both[0].loss, both[1].loss, 1e-5 * both[1].loss);
  }
  EXPECT_GT(whatif.kept_bytes(), 0);
  EXPECT_THROW(tally(whatif, at.settings, std::vector<Question>{{{}, 1, 1000, 0}}), std::exception);
}

TEST(WhatIf, KeptActivationsAndWorkersChangeNothing) {
  Fixture at = make(zoo::make("lenet5"), "glyphs:test", 300);
  std::vector<Question> questions = some_edits(at, 3, 8);
  std::vector<std::vector<Tally>> found;
  for (Options options : {Options{.jobs = 1}, Options{.jobs = 3}, Options{.jobs = 2, .keep = true},
                          Options{.keep = true, .memory = 100}}) {
    WhatIf whatif(at.subject, at.settings, at.layers, options);
    tally(whatif, at.settings, questions);
    found.push_back(tally(whatif, at.settings, questions));
    EXPECT_EQ(whatif.kept_bytes() > 0, options.keep && options.memory == 0);
  }
  for (const auto& other : found)
    for (size_t q = 0; q < questions.size(); ++q) EXPECT_EQ(other[q].loss, found[0][q].loss) << q;
}

TEST(WhatIf, MeansAreThoseOfTheUnits) {
  Fixture at = make(zoo::make("dnn1"), "glyphs:test", 100);
  WhatIf whatif(at.subject, at.settings, at.layers);
  auto means = whatif.means();
  std::vector<int64_t> all(100);
  for (int64_t i = 0; i < 100; ++i) all[size_t(i)] = i;
  at::Tensor values = stream::run_few(at.subject, {at.layers[0].post}, at.subject.data->read(all))[0].mean(0);
  for (int64_t unit = 0; unit < at.layers[0].units; ++unit)
    EXPECT_NEAR(means[0][size_t(unit)], values[unit].item<double>(), 1e-5);
}

TEST(WhatIf, EditsOfAnotherModelAreRefused) {
  Fixture at = make(zoo::make("dnn1"), "glyphs:test", 20);
  model::Graph other = zoo::make("dnn1", {.seed = 77});
  Question question{edits::operate(other, at.layers[0], 1, {edits::Target::kWeights, edits::Change::kSet, 0}, 1)};
  WhatIf whatif(at.subject, at.settings, at.layers);
  EXPECT_THROW(whatif.ask({&question, 1}, [](size_t, int64_t, std::span<const Judgement>) {}), InputError);
}

}  // namespace
}  // namespace netmend::whatif
