#include "edits/operations.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/random.h"
#include "edits/difference.h"
#include "edits/graph_for_test.h"
#include "edits/places.h"
#include "executor/executor.h"
#include "executor/layers.h"
#include "zoo/zoo.h"

namespace netmend::edits {
namespace {

using model::Element;
using model::Graph;
using model::Layer;
using model::ValueId;

at::Tensor run(const Graph& graph, std::vector<at::Tensor> given, ValueId wanted, std::vector<ValueId> from = {}) {
  at::NoGradGuard no_grad;
  executor::Request request;
  request.given = std::move(from), request.wanted = {wanted}, request.mode = executor::Mode::kPlain;
  return executor::Executor(graph, request).run(given)[0];
}

Graph changed(Graph graph, std::span<const Edit> edits) {
  edits::apply(graph, edits);
  return graph;
}

/// Biases start at zero in the zoo; a test that scales them needs others.
Graph network(const std::string& name, uint64_t seed) {
  Graph graph = zoo::make(name, {.seed = seed, .vocabulary = 60});
  at::manual_seed(seed);
  for (const Layer& layer : executor::find_layers(graph))
    if (layer.bias != model::kAbsent) graph.replace(layer.bias, at::randn(graph.constant(layer.bias).sizes()));
  return graph;
}

std::string reason(const std::function<void()>& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// The layer's units that differ between two graphs on random inputs, by running them.
std::set<int64_t> units_that_moved(const Graph& a, const Graph& b, const Layer& layer,
                                   const std::vector<at::Tensor>& batch) {
  at::Tensor before = model::unit_maps(layer, run(a, batch, layer.pre)),
             after = model::unit_maps(layer, run(b, batch, layer.pre));
  std::set<int64_t> moved;
  for (int64_t unit = 0; unit < layer.units; ++unit)
    if (!at::allclose(before.select(1, unit), after.select(1, unit), 1e-5, 1e-6)) moved.insert(unit);
  return moved;
}

/// Every operation on some units of a layer: only that unit's values move, and reverting restores all bits.
void check_layer(const Graph& graph, const Layer& layer, const std::vector<at::Tensor>& batch, Random& random) {
  for (const NamedOperation& row : operations()) {
    if (row.usual.target == Target::kOutgoing || (row.usual.target == Target::kBias && layer.bias == model::kAbsent))
      continue;
    Operation operation = row.usual;
    if (row.name == "set-weights" || row.name == "set-bias") operation.value = 1.5;
    int64_t unit = int64_t(random.below(uint64_t(layer.units)));
    std::vector<Edit> edits = operate(graph, layer, unit, operation, 7);
    ASSERT_FALSE(edits.empty()) << layer.name << ' ' << row.name;
    Graph other = changed(graph, edits);
    EXPECT_EQ(units_that_moved(graph, other, layer, batch), std::set<int64_t>{unit}) << layer.name << ' ' << row.name;
    revert(other, edits);
    EXPECT_TRUE(same_constants(graph, other)) << layer.name << ' ' << row.name;
  }
}

TEST(Operations, ChangeTheirUnitAloneOnEveryArchitecture) {
  Random random(3);
  for (std::string name : {"lenet5", "cnn2", "dnn2", "resnet20", "textcnn", "mlp:12-9-5"}) {
    Graph graph = network(name, 5);
    std::vector<at::Tensor> batch = random_batch(graph, 2);
    for (const Layer& layer : executor::find_layers(graph)) check_layer(graph, layer, batch, random);
  }
}

struct OneLayer {
  std::string name;
  Graph graph;
};

/// One layer each, in every form that exporters write.
std::vector<OneLayer> single_layers() {
  at::manual_seed(1);
  std::vector<OneLayer> all;
  auto add = [&](const std::string& name, const std::vector<int64_t>& shape, auto build) {
    GraphForTest g;
    ValueId x = g.input("x", shape);
    ValueId y = build(g, x);
    all.push_back({name, g.finish(y)});
  };
  auto bias = [](GraphForTest& g, int64_t n) { return g.constant("b", at::randn({n})); };
  add("gemm", {1, 5}, [&](GraphForTest& g, ValueId x) {
    return g.node("Gemm", {x, g.constant("w", at::randn({5, 4})), bias(g, 4)});
  });
  add("gemm turned", {1, 5}, [&](GraphForTest& g, ValueId x) {
    return g.node("Gemm", {x, g.constant("w", at::randn({4, 5})), bias(g, 4)}, {{"transB", int64_t(1)}});
  });
  add("gemm, square", {1, 4}, [&](GraphForTest& g, ValueId x) {
    return g.node("Gemm", {x, g.constant("w", at::randn({4, 4})), g.constant("b", at::randn({1, 4}))});
  });
  add("matmul and add", {1, 3, 5}, [&](GraphForTest& g, ValueId x) {
    return g.node("Add", {g.node("MatMul", {x, g.constant("w", at::randn({5, 4}))}), bias(g, 4)});
  });
  add("matmul behind transpose", {1, 5}, [&](GraphForTest& g, ValueId x) {
    ValueId w = g.node("Transpose", {g.constant("w", at::randn({4, 5}))});
    return g.node("Add", {bias(g, 4), g.node("MatMul", {x, w})});
  });
  add("conv1d", {1, 3, 9}, [&](GraphForTest& g, ValueId x) {
    return g.node("Conv", {x, g.constant("w", at::randn({4, 3, 2})), bias(g, 4)});
  });
  add("conv2d with groups", {1, 6, 7, 7}, [&](GraphForTest& g, ValueId x) {
    return g.node("Conv", {x, g.constant("w", at::randn({4, 3, 3, 3})), bias(g, 4)}, {{"group", int64_t(2)}});
  });
  add("conv2d behind reshape and identity", {1, 3, 7, 7}, [&](GraphForTest& g, ValueId x) {
    ValueId shape = g.constant("shape", at::tensor({4, 3, 3, -1}, at::kLong));
    ValueId w = g.node("Reshape", {g.node("Identity", {g.constant("w", at::randn({2, 2, 27}))}), shape});
    return g.node("Conv", {x, w, bias(g, 4)});
  });
  add("conv3d", {1, 2, 5, 5, 5}, [&](GraphForTest& g, ValueId x) {
    return g.node("Conv", {x, g.constant("w", at::randn({4, 2, 3, 3, 3})), bias(g, 4)});
  });
  add("conv2d and norm", {1, 2, 5, 5}, [&](GraphForTest& g, ValueId x) {
    ValueId y = g.node("Conv", {x, g.constant("w", at::randn({4, 2, 3, 3})), bias(g, 4)});
    return g.node("BatchNormalization",
                  {y, g.constant("scale", at::rand({4}) + 0.5), g.constant("shift", at::randn({4})),
                   g.constant("mean", at::randn({4})), g.constant("var", at::rand({4}) + 0.5)});
  });
  add("conv transpose", {1, 3, 5, 5}, [&](GraphForTest& g, ValueId x) {
    return g.node("ConvTranspose", {x, g.constant("w", at::randn({3, 4, 2, 2})), bias(g, 4)});
  });
  for (auto [op, gates] : {std::pair<const char*, int64_t>{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}})
    for (int64_t directions : {1, 2})
      add(fmt::format("{} {}", op, directions), {1, 1, 5}, [&, op = op, gates = gates](GraphForTest& g, ValueId x) {
        std::string direction = directions == 2 ? "bidirectional" : "forward";
        return g.node(op,
                      {x, g.constant("w", at::randn({directions, gates * 4, 5})),
                       g.constant("r", at::randn({directions, gates * 4, 4})),
                       g.constant("b", at::randn({directions, 2 * gates * 4}))},
                      {{"hidden_size", int64_t(4)}, {"direction", direction}});
      });
  return all;
}

TEST(Operations, ChangeTheirUnitAloneInEveryForm) {
  Random random(4);
  for (const OneLayer& one : single_layers()) {
    SCOPED_TRACE(one.name);
    std::vector<Layer> layers = executor::find_layers(one.graph);
    ASSERT_EQ(layers.size(), 1u);
    // One step in time: later ones carry a unit to all others.
    for (int repeat = 0; repeat < 3; ++repeat) check_layer(one.graph, layers[0], random_batch(one.graph, 1), random);
  }
}

TEST(Operations, DeletingAllUnitsLeavesNoWeightAndEveryWeightHasOneUnit) {
  for (const OneLayer& one : single_layers()) {
    SCOPED_TRACE(one.name);
    Layer layer = executor::find_layers(one.graph)[0];
    Graph graph = one.graph;
    for (int64_t unit = 0; unit < layer.units; ++unit)
      edits::apply(graph, operate(graph, layer, unit, {Target::kWeights, Change::kSet, 0}, 0));
    for (const Part& part : find_parts(graph, layer).list) {
      std::set<int64_t> all;
      size_t count = 0;
      for (int64_t unit = 0; unit < layer.units; ++unit) {
        std::vector<int64_t> some = part.positions(graph, unit);
        count += some.size();
        all.insert(some.begin(), some.end());
      }
      EXPECT_EQ(int64_t(count), graph.constant(part.parameter).numel());
      EXPECT_EQ(count, all.size());
      if (part.role == Role::kWeight) {
        EXPECT_EQ(graph.constant(part.parameter).count_nonzero().item<int64_t>(), 0);
      }
    }
  }
}

TEST(Operations, AreFoundByTheDifferenceInEveryForm) {
  for (const OneLayer& one : single_layers()) {
    SCOPED_TRACE(one.name);
    Layer layer = executor::find_layers(one.graph)[0];
    int64_t unit = layer.units - 1;
    Graph other = changed(one.graph, operate(one.graph, layer, unit, {Target::kWeights, Change::kScale, 2}, 0));
    Difference found = compare(one.graph, other, std::span(&layer, 1));
    ASSERT_EQ(found.units.size(), 1u);
    EXPECT_EQ(found.units[0].name, model::unit_name(layer, unit));
    std::vector<Edit> edits = edits_between(one.graph, other, std::span(&layer, 1));
    for (const Edit& edit : edits) EXPECT_EQ(edit.unit, model::unit_name(layer, unit));
    EXPECT_TRUE(same_constants(changed(one.graph, edits), other));
  }
}

/// The twin: what each operation does to a row of weights and to a bias, by hand.
TEST(Operations, AreWhatTheyAreCalled) {
  GraphForTest g;
  at::Tensor w = at::randn({3, 50}), b = at::randn({3});
  ValueId x = g.input("x", {1, 50});
  ValueId weight = g.constant("w", w), bias = g.constant("b", b);
  Graph graph = g.finish(g.node("Gemm", {x, weight, bias}, {{"transB", int64_t(1)}}));
  Layer layer = executor::find_layers(graph)[0];
  auto after = [&](const char* name, double value) {
    Operation operation = find_operation(name).usual;
    operation.value = value;
    return changed(graph, operate(graph, layer, 1, operation, 9));
  };
  auto row = [&](const Graph& other) { return other.constant(weight)[1]; };
  EXPECT_TRUE(at::equal(row(after("set-weights", -0.5)), at::full({50}, -0.5)));
  EXPECT_TRUE(at::equal(row(after("delete", 0)), at::zeros({50})));
  EXPECT_TRUE(at::equal(row(after("scale-weights", 0.25)), w[1] * 0.25));
  at::Tensor one = row(after("gauss-weights-one", 2)), each = row(after("gauss-weights", 2));
  EXPECT_TRUE(at::equal(one, one[0].expand({50})));
  EXPECT_NE(one[0].item<float>(), 0);
  EXPECT_NEAR(each.std().item<float>(), 2, 0.7);
  at::Tensor factor = row(after("scale-weights-gauss-one", 1)) / w[1];
  EXPECT_TRUE(at::allclose(factor, factor[0].expand({50}), 1e-5));
  EXPECT_NEAR((row(after("scale-weights-gauss", 2)) / w[1]).std().item<float>(), 2, 0.7);
  EXPECT_TRUE(at::equal(after("scale-weights", 3).constant(bias), b));
  EXPECT_EQ(after("set-bias", 0.5).constant(bias)[1].item<float>(), 0.5f);
  EXPECT_EQ(after("scale-bias", -2).constant(bias)[1].item<float>(), b[1].item<float>() * -2);
  EXPECT_NE(after("gauss-bias", 1).constant(bias)[1].item<float>(), b[1].item<float>());
  EXPECT_NE(after("scale-bias-gauss", 1).constant(bias)[1].item<float>(), b[1].item<float>());
  EXPECT_TRUE(at::equal(after("scale-bias-gauss", 1).constant(weight), w));
}

TEST(Operations, DependOnSeedAndUnitAlone) {
  Graph graph = network("mlp:12-9-5", 1);
  Layer layer = executor::find_layers(graph)[0];
  Operation noise{Target::kWeights, Change::kSetGaussEach, 1};
  EXPECT_EQ(operate(graph, layer, 2, noise, 5), operate(graph, layer, 2, noise, 5));
  EXPECT_NE(operate(graph, layer, 2, noise, 5)[0].after, operate(graph, layer, 2, noise, 6)[0].after);
  EXPECT_NE(operate(graph, layer, 2, noise, 5)[0].after, operate(graph, layer, 3, noise, 5)[0].after);
}

/// Scaling what reads a unit is scaling the unit itself, wherever positive factors pass through what lies between.
TEST(Operations, OutgoingEqualsScalingTheUnit) {
  for (std::string name : {"lenet5", "cnn2", "mlp:12-9-5", "textcnn"}) {
    Graph graph = network(name, 8);
    std::vector<Layer> layers = executor::find_layers(graph);
    std::vector<at::Tensor> batch = random_batch(graph, 3);
    for (size_t i = 0; i + 1 < layers.size(); ++i) {
      SCOPED_TRACE(name + " " + layers[i].name);
      int64_t unit = layers[i].units / 2;
      std::vector<Edit> edits;
      std::string refused = reason([&] {
        edits = operate(graph, layers[i], unit, {Target::kOutgoing, Change::kScale, 0.25}, 0);
      });
      if (name == "textcnn" && refused != "no error") {
        EXPECT_NE(refused.find("not a plain linear layer"), std::string::npos) << refused;
        continue;
      }
      ASSERT_EQ(refused, "no error");
      at::Tensor post = run(graph, batch, layers[i].post).clone();
      post.select(layers[i].unit_axis, unit).mul_(0.25);
      at::Tensor expected = run(graph, {post}, graph.outputs[0], {layers[i].post});
      EXPECT_TRUE(at::allclose(run(changed(graph, edits), batch, graph.outputs[0]), expected, 1e-4, 1e-5));
    }
    EXPECT_NE(reason([&] {
                operate(graph, layers.back(), 0, {Target::kOutgoing, Change::kScale, 0}, 0);
              }).find("is an output"),
              std::string::npos);
  }
}

TEST(Operations, OutgoingThroughGroupsAndUnitsLast) {
  at::manual_seed(2);
  GraphForTest g;
  ValueId x = g.input("x", {1, 3, 6, 6});
  ValueId a = g.node("Relu", {g.node("Conv", {x, g.constant("w1", at::randn({4, 3, 3, 3}))})});
  ValueId b = g.node("Relu", {g.node("Conv", {a, g.constant("w2", at::randn({6, 2, 1, 1}))}, {{"group", int64_t(2)}})});
  ValueId last = g.node("Transpose", {b}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  ValueId flat = g.node("Reshape", {last, g.constant("shape", at::tensor({0, -1}, at::kLong))});
  Graph graph = g.finish(g.node("MatMul", {flat, g.constant("w3", at::randn({96, 2}))}));
  std::vector<Layer> layers = executor::find_layers(graph);
  ASSERT_EQ(layers.size(), 3u);
  std::vector<at::Tensor> batch = random_batch(graph, 1);
  for (int64_t unit : {0, 1, 3}) {
    for (const Layer& layer : {layers[0], layers[1]}) {
      at::Tensor post = run(graph, batch, layer.post).clone();
      post.select(layer.unit_axis, unit).mul_(-3);
      at::Tensor expected = run(graph, {post}, graph.outputs[0], {layer.post});
      Graph other = changed(graph, operate(graph, layer, unit, {Target::kOutgoing, Change::kScale, -3}, 0));
      EXPECT_TRUE(at::allclose(run(other, batch, graph.outputs[0]), expected, 1e-4, 1e-4)) << layer.name << unit;
    }
  }
}

TEST(Operations, RefuseByName) {
  auto said = [&](const Graph& graph, Operation operation, int64_t unit = 0) {
    return reason([&] { operate(graph, executor::find_layers(graph).at(0), unit, operation, 0); });
  };
  auto holds = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  Operation erase{Target::kWeights, Change::kSet, 0};
  Graph plain = network("mlp:12-9-5", 1);
  holds(said(plain, erase, 9), "there is no unit fc1/9");
  holds(said(plain, erase, -1), "there is no unit");
  holds(said(plain, {Target::kWeights, Change::kSet, NAN}), "needs a number");
  holds(said(plain, {Target::kWeights, Change::kSetGauss, -1}), "standard deviation");
  holds(said(plain, {Target::kWeights, Change::kScale, 1e300}), "too large for float32");
  holds(reason([] { find_operation("scale-weigths"); }), "did you mean scale-weights?");
  holds(said(network("resnet20", 1), {Target::kOutgoing, Change::kScale, 0}), "not a plain linear layer");
  {
    GraphForTest g;  // no bias
    ValueId x = g.input("x", {1, 5});
    Graph graph = g.finish(g.node("MatMul", {x, g.constant("w", at::randn({5, 4}))}));
    holds(said(graph, {Target::kBias, Change::kSet, 0}), "it has none");
  }
  {
    GraphForTest g;  // tied weights
    ValueId x = g.input("x", {1, 4}), w = g.constant("w", at::randn({4, 4}));
    Graph graph = g.finish(g.node("MatMul", {g.node("MatMul", {x, w}), w}));
    holds(said(graph, erase), "w is read by MatMul n0 and MatMul n1");
  }
  {
    GraphForTest g;  // one offset for all units
    ValueId x = g.input("x", {1, 5});
    Graph graph = g.finish(g.node("Gemm", {x, g.constant("w", at::randn({5, 4})), g.constant("c", at::randn({1}))}));
    holds(said(graph, {Target::kBias, Change::kSet, 0}), "c does not hold one number per unit");
  }
  {
    GraphForTest g;
    ValueId x = g.input("x", {1, 5});
    ValueId w = g.node("DequantizeLinear", {g.constant("w", at::randint(-9, 9, {5, 4}, at::kChar)),
                                            g.constant("s", at::scalar_tensor(0.1f))});
    Graph graph = g.finish(g.node("MatMul", {x, w}));
    holds(said(graph, erase), "w is quantised (DequantizeLinear n0)");
  }
  {
    GraphForTest g;  // weight norm
    ValueId x = g.input("x", {1, 5});
    ValueId w = g.node("Mul", {g.constant("v", at::randn({5, 4})), g.constant("g", at::randn({4}))});
    Graph graph = g.finish(g.node("MatMul", {x, w}));
    holds(said(graph, erase), "it is computed by Mul n0");
  }
  {
    GraphForTest g;  // no slices of the file are rows of this matrix
    ValueId x = g.input("x", {1, 6});
    ValueId turned = g.node("Transpose", {g.constant("w", at::randn({4, 6}))});
    ValueId w = g.node("Reshape", {turned, g.constant("shape", at::tensor({6, 4}, at::kLong))});
    ValueId again = g.node("Reshape", {w, g.constant("shape2", at::tensor({3, 8}, at::kLong))});
    ValueId back = g.node("Reshape", {again, g.constant("shape3", at::tensor({6, 4}, at::kLong))});
    Graph graph = g.finish(g.node("MatMul", {x, back}));
    holds(said(graph, erase), "is rearranged by Reshape");
  }
}

TEST(Operations, SizesThatDoNotFitAreRefused) {
  for (at::Tensor w : {at::randn({1, 8, 5}), at::randn({2, 9, 5})}) {
    GraphForTest g;
    ValueId x = g.input("x", {1, 1, 5});
    Graph graph = g.finish(g.node("GRU", {x, g.constant("w", w), g.constant("r", at::randn({2, 12, 4}))},
                                  {{"hidden_size", int64_t(4)}, {"direction", std::string("bidirectional")}}));
    Layer layer = executor::find_layers(graph).at(0);
    EXPECT_NE(reason([&] { operate(graph, layer, 7, {}, 0); }).find("do not fit 4 hidden features"), std::string::npos);
  }
}

TEST(Operations, OutgoingOfAComputedWeight) {
  GraphForTest g;
  ValueId x = g.input("x", {1, 2, 6, 6});
  ValueId w = g.node("Mul", {g.constant("v", at::randn({3, 2, 6, 6})), g.constant("g", at::randn({3, 1, 1, 1}))});
  ValueId flat = g.node("Flatten", {g.node("Relu", {g.node("Conv", {x, w})})});
  Graph graph = g.finish(g.node("MatMul", {flat, g.constant("w2", at::randn({3, 2}))}));
  Layer layer = executor::find_layers(graph).at(0);
  std::vector<Edit> edits = operate(graph, layer, 1, {Target::kOutgoing, Change::kScale, 0}, 0);
  ASSERT_EQ(edits.size(), 1u);
  EXPECT_EQ(std::make_pair(edits[0].axis, edits[0].index), std::make_pair(int64_t(0), int64_t(1)));
}

TEST(Operations, HalfPrecisionIsWhatTheFileCanHold) {
  for (Element stored : {Element::kFloat16, Element::kBFloat16}) {
    GraphForTest g;
    ValueId x = g.input("x", {1, 5});
    ValueId w = g.node("Cast", {g.constant("w", at::randn({5, 4}), stored)}, {{"to", int64_t(1)}});
    Graph graph = g.finish(g.node("MatMul", {x, w}));
    Layer layer = executor::find_layers(graph)[0];
    std::vector<Edit> edits = operate(graph, layer, 1, {Target::kWeights, Change::kScale, 1.0 / 3}, 0);
    ASSERT_EQ(edits.size(), 1u);
    at::Tensor after = at::tensor(edits[0].after, at::kFloat);
    EXPECT_TRUE(at::equal(model::rounded(stored, after), after));
    Graph other = changed(graph, edits);
    EXPECT_EQ(numbers(other.constant(layer.weight).select(1, 1)), edits[0].after);
    revert(other, edits);
    EXPECT_TRUE(same_constants(graph, other));
    if (stored == Element::kFloat16) {
      EXPECT_NE(reason([&] {
                  operate(graph, layer, 0, {Target::kWeights, Change::kSet, 70000}, 0);
                }).find("70000 is too large for float16"),
                std::string::npos);
    }
  }
}

}  // namespace
}  // namespace netmend::edits
