#include "executor/executor.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "executor/batching.h"
#include "executor/layers.h"
#include "executor/runtime.h"
#include "zoo/init.h"
#include "zoo/zoo.h"

namespace netmend::executor {
namespace {

using model::Graph;
using model::Node;
using model::ValueId;

ValueId constant(Graph& graph, const std::string& name, const at::Tensor& value) {
  ValueId id = graph.add_value(name, model::element_of(value.scalar_type()));
  graph.constants[id] = {value, model::element_of(value.scalar_type()), {}, false};
  return id;
}

ValueId input(Graph& graph, const std::string& name, std::vector<int64_t> shape) {
  ValueId id = graph.add_value(name, model::Element::kFloat);
  graph.values[size_t(id)].shape.emplace();
  for (int64_t size : shape) graph.values[size_t(id)].shape->push_back({size, ""});
  graph.inputs.push_back(id);
  return id;
}

ValueId node(Graph& graph, const std::string& op, std::vector<ValueId> inputs,
             std::map<std::string, model::Attribute, std::less<>> attributes = {}, const std::string& name = "") {
  ValueId out = graph.add_value(op + std::to_string(graph.nodes.size()));
  graph.nodes.push_back(
      {name.empty() ? op + "_" + std::to_string(graph.nodes.size()) : name, op, "", 17, inputs, {out}, attributes});
  return out;
}

Graph named(const std::string& name) {
  Graph graph = zoo::make(name, {});
  return graph;
}

std::vector<at::Tensor> random_batch(const Graph& graph, int64_t count) {
  std::vector<at::Tensor> inputs;
  for (ValueId id : graph.inputs) {
    std::vector<int64_t> shape{count};
    for (size_t axis = 1; axis < graph.values[size_t(id)].shape->size(); ++axis)
      shape.push_back((*graph.values[size_t(id)].shape)[axis].size);
    bool ids = graph.values[size_t(id)].type == model::Element::kInt64;
    inputs.push_back(ids ? at::randint(50, shape, at::kLong) : at::randn(shape));
  }
  return inputs;
}

TEST(Executor, FastAgreesWithPlainOnEveryArchitecture) {
  at::NoGradGuard no_grad;
  for (const char* name : {"lenet1", "lenet5", "dnn2", "cnn2", "cifar-convnet", "resnet20", "textcnn", "mlp:20-7-3"}) {
    Graph graph = named(name);
    for (auto& [id, value] : graph.constants)  // fresh batch norm statistics are too simple to show a mistake
      if (value.value.is_floating_point() && value.value.dim() == 1) value.value = at::rand_like(value.value) + 0.5;
    std::vector<at::Tensor> batch = random_batch(graph, 5);
    Request plain;
    plain.mode = Mode::kPlain;
    at::Tensor fast = Executor(graph).run(batch)[0], slow = Executor(graph, plain).run(batch)[0];
    EXPECT_LT((fast - slow).abs().max().item<double>(), 1e-4 * slow.abs().max().item<double>() + 1e-6) << name;
    plain.precision = at::kDouble;
    at::Tensor exact = Executor(graph, plain).run(batch)[0];
    EXPECT_EQ(exact.scalar_type(), at::kDouble);
    EXPECT_LT((fast - exact).abs().max().item<double>(), 1e-4 * exact.abs().max().item<double>() + 1e-6) << name;
  }
}

TEST(Executor, TapsDoNotChangeTheAnswerAndEqualThePlainValues) {
  at::NoGradGuard no_grad;
  for (const char* name : {"lenet5", "resnet20", "cifar-convnet"}) {
    Graph graph = named(name);
    std::vector<at::Tensor> batch = random_batch(graph, 4);
    at::Tensor alone = Executor(graph).run(batch)[0];
    Request tapped;
    tapped.wanted = graph.outputs;
    for (const model::Layer& layer : find_layers(graph))
      tapped.wanted.push_back(layer.pre), tapped.wanted.push_back(layer.post);
    std::vector<at::Tensor> fast = Executor(graph, tapped).run(batch);
    EXPECT_TRUE(at::equal(fast[0], alone)) << name;
    tapped.mode = Mode::kPlain;
    std::vector<at::Tensor> plain = Executor(graph, tapped).run(batch);
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_TRUE(at::allclose(fast[i], plain[i], 1e-3, 1e-4)) << name << " " << i;
  }
}

TEST(Executor, ForwardFromTheMiddleEqualsTheWhole) {
  at::NoGradGuard no_grad;
  Graph graph = named("lenet5");
  std::vector<model::Layer> layers = find_layers(graph);
  std::vector<at::Tensor> batch = random_batch(graph, 3);
  Request head, tail;
  head.wanted = {layers[1].post};
  tail.given = {layers[1].post};
  at::Tensor middle = Executor(graph, head).run(batch)[0];
  std::vector<at::Tensor> cut{middle};
  EXPECT_TRUE(at::allclose(Executor(graph, tail).run(cut)[0], Executor(graph).run(batch)[0], 1e-5, 1e-6));
  tail.given = {layers[2].post};
  tail.wanted = {layers[0].post};
  EXPECT_THROW(Executor(graph, tail), InputError);
}

TEST(Executor, GradientsReachInputsActivationsAndWeights) {
  Graph graph = named("mlp:6-5-3");
  std::vector<model::Layer> layers = find_layers(graph);
  Request request;
  request.mode = Mode::kPlain;
  request.precision = at::kDouble;
  request.given = {graph.inputs[0], layers[0].weight};
  request.wanted = {graph.outputs[0], layers[0].post};
  Executor executor(graph, request);
  auto loss_at = [&](const at::Tensor& x, const at::Tensor& w) {
    std::vector<at::Tensor> given{x, w};
    return executor.run(given)[0].pow(2).sum();
  };
  at::Tensor x = at::randn({2, 6}, at::kDouble).requires_grad_(),
             w = graph.constant(layers[0].weight).to(at::kDouble).clone().requires_grad_();
  std::vector<at::Tensor> given{x, w};
  std::vector<at::Tensor> values = executor.run(given);
  std::vector<at::Tensor> gradients = torch::autograd::grad({values[0].pow(2).sum()}, {x, w, values[1]});
  at::NoGradGuard no_grad;
  for (at::Tensor* variable : {&x, &w}) {
    double step = 1e-6;
    at::Tensor direction = at::randn_like(*variable), ahead = *variable + step * direction,
               behind = *variable - step * direction;
    bool first = variable == &x;
    double slope = (loss_at(first ? ahead : x, first ? w : ahead) - loss_at(first ? behind : x, first ? w : behind))
                       .item<double>() /
                   (2 * step);
    EXPECT_NEAR((gradients[first ? 0 : 1] * direction).sum().item<double>(), slope, 1e-4 * std::abs(slope) + 1e-6);
  }
  EXPECT_EQ(gradients[2].sizes(), values[1].sizes());
}

TEST(Executor, NothingOfTheCallerIsOverwritten) {
  at::NoGradGuard no_grad;
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {1, 4});
  ValueId view = node(graph, "Identity", {x});
  ValueId relu = node(graph, "Relu", {view}), shared = node(graph, "Neg", {x});
  ValueId twice = node(graph, "Add", {relu, relu});
  graph.outputs = {relu, twice, node(graph, "Add", {shared, twice})};
  at::Tensor data = at::tensor({-1.f, 2.f, -3.f, 4.f}).view({1, 4}), before = data.clone();
  std::vector<at::Tensor> given{data}, out = Executor(graph).run(given);
  EXPECT_TRUE(at::equal(data, before));
  EXPECT_TRUE(at::equal(out[0], before.relu()));
  EXPECT_TRUE(at::equal(out[1], before.relu() * 2));
  EXPECT_TRUE(at::equal(out[2], before.relu() * 2 - before));
}

TEST(Executor, AsksForTooMuchMemoryAndIsRefused) {
  start_runtime(int64_t(1) << 30);
  at::NoGradGuard no_grad;
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {1, 1});
  ValueId sizes = constant(graph, "sizes", at::tensor({int64_t(160000), int64_t(160000)}));
  graph.outputs = {node(graph, "Expand", {x, sizes}), node(graph, "Tile", {x, sizes})};
  std::vector<at::Tensor> given{at::ones({1, 1})};
  Request one;
  for (ValueId output : graph.outputs) {
    one.wanted = {node(graph, "Neg", {output})};
    EXPECT_THROW(Executor(graph, one).run(given), InputError);
  }
  EXPECT_LT(memory_peak(), int64_t(1) << 30);
}

TEST(Executor, AMismatchNamesTheNodeAndTheShapes) {
  Graph graph = named("mlp:6-5-3");
  std::vector<at::Tensor> wrong{at::ones({2, 7})};
  try {
    Executor(graph).run(wrong);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("2×7"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("node"), std::string::npos);
  }
}

TEST(Layers, AreFoundInManySpellings) {
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {1, 8, 8, 3});
  // NHWC as exported from Keras: transpose, convolution, transpose back, bias, relu; weights behind a Transpose.
  ValueId first = node(graph, "Transpose", {x}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  ValueId kernel = node(graph, "Transpose", {constant(graph, "kernel", at::randn({3, 3, 3, 5}))},
                        {{"perm", std::vector<int64_t>{3, 2, 0, 1}}});
  ValueId conv = node(graph, "Conv", {first, kernel}, {}, "StatefulPartitionedCall/net/conv_a/Conv2D");
  ValueId back = node(graph, "Transpose", {conv}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  ValueId biased = node(graph, "Add", {back, constant(graph, "offset", at::randn({5}))});
  ValueId active = node(graph, "Relu", {biased});
  ValueId mean = node(graph, "ReduceMean", {active}, {{"axes", std::vector<int64_t>{1, 2}}, {"keepdims", int64_t(0)}});
  // A dense layer of a transformer: product, bias, and gelu in five nodes.
  ValueId dense = node(graph, "MatMul", {mean, constant(graph, "dense", at::randn({5, 7}))}, {},
                       "StatefulPartitionedCall/net/dense_b/MatMul");
  ValueId z = node(graph, "Add", {constant(graph, "b", at::randn({7})), dense});
  ValueId e = node(graph, "Erf", {node(graph, "Div", {z, constant(graph, "root", at::tensor(1.4142135f))})});
  ValueId half = node(graph, "Mul", {z, node(graph, "Add", {e, constant(graph, "one", at::tensor(1.f))})});
  ValueId gelu = node(graph, "Mul", {half, constant(graph, "half", at::tensor(0.5f))});
  graph.outputs = {node(graph, "Softmax", {gelu})};
  std::vector<model::Layer> layers = find_layers(graph);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].name, "conv_a");
  EXPECT_EQ(layers[0].units, 5);
  EXPECT_EQ(layers[0].activation, "Relu");
  EXPECT_EQ(layers[0].post, active);
  EXPECT_EQ(layers[0].unit_axis, 3);
  EXPECT_EQ(graph.values[size_t(layers[0].weight)].name, "kernel");
  EXPECT_EQ(graph.values[size_t(layers[0].bias)].name, "offset");
  EXPECT_EQ(layers[0].parameters, 3 * 3 * 3 * 5 + 5);
  EXPECT_EQ(layers[1].name, "dense_b");
  EXPECT_EQ(layers[1].activation, "Gelu");
  EXPECT_EQ(layers[1].post, gelu);
  EXPECT_EQ(find_head(graph, graph.outputs[0]).logits, gelu);
  EXPECT_EQ(find_head(graph, graph.outputs[0]).output_kind, OutputKind::kProbabilities);
  EXPECT_EQ(find_parameters(graph).size(), 4u);

  Request request;
  request.wanted = {layers[0].post};
  std::vector<at::Tensor> batch = random_batch(graph, 2);
  at::NoGradGuard no_grad;
  at::Tensor tap = Executor(graph, request).run(batch)[0];
  EXPECT_TRUE(at::allclose(model::unit_values(layers[0], tap), tap.mean({1, 2})));
}

Graph fixed_at_one(int64_t rest) {
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {1, 2, 6});
  ValueId flat = node(graph, "Reshape", {x, constant(graph, "shape", at::tensor({int64_t(1), rest}))});
  ValueId token = constant(graph, "token", at::randn({1, 3}));
  ValueId joined = node(graph, "Concat", {token, flat}, {{"axis", int64_t(1)}});
  graph.outputs = {node(graph, "MatMul", {joined, constant(graph, "w", at::randn({15, 4}))})};
  return graph;
}

TEST(Batching, AFileFixedAtOneRunsAtAnySize) {
  for (int64_t rest : {12, -1}) {
    Graph graph = fixed_at_one(rest);
    Batching batching = find_batching(graph, random_batch(graph, 8), graph.outputs);
    EXPECT_EQ(batching.kind, Batching::kAny) << batching.note;
    EXPECT_NE(batching.note.find("generalised"), std::string::npos);
    at::NoGradGuard no_grad;
    EXPECT_EQ(Executor(batching.graph).run(random_batch(graph, 13))[0].size(0), 13);
  }
}

TEST(Batching, InputsThatInfluenceEachOtherRunAlone) {
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {-1, 4});
  ValueId mean = node(graph, "ReduceMean", {x}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t(1)}});
  graph.outputs = {node(graph, "Sub", {x, mean})};
  Batching batching = find_batching(graph, random_batch(graph, 8), graph.outputs);
  EXPECT_EQ(batching.kind, Batching::kOne);
  EXPECT_NE(batching.note.find("one at a time"), std::string::npos);
}

TEST(Batching, ASmallInfluenceOfOthersIsNoRounding) {
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {-1, 4});
  ValueId mean = node(graph, "ReduceMean", {x}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t(1)}});
  graph.outputs = {node(graph, "Add", {x, node(graph, "Mul", {mean, constant(graph, "little", at::tensor({1e-3f}))})})};
  EXPECT_EQ(find_batching(graph, random_batch(graph, 8), graph.outputs).kind, Batching::kOne);
}

TEST(Batching, AmplifiedRoundingIsNoInfluenceOfOthers) {
  at::manual_seed(3);
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {-1, 512});
  at::Tensor w = at::randn({512, 16});
  // Both products are large and nearly equal: what is left of them is made of rounding to a thousandth or so.
  ValueId one = node(graph, "MatMul", {x, constant(graph, "w1", w)}),
          other =
              node(graph, "MatMul", {x, constant(graph, "w2", w.t().contiguous().t() + 1e-3 * at::randn({512, 16}))});
  graph.outputs = {node(graph, "Sub", {one, other})};
  const std::vector<at::Tensor> batch = random_batch(graph, 8);
  Batching batching = find_batching(graph, batch, graph.outputs);
  EXPECT_EQ(batching.kind, Batching::kAny) << batching.note;
  at::NoGradGuard no_grad;
  Executor executor(graph);
  const at::Tensor together = executor.run(batch)[0];
  double apart = 0;
  for (int64_t row = 0; row < 8; ++row) {
    const at::Tensor alone = executor.run(std::vector<at::Tensor>{batch[0].narrow(0, row, 1)})[0][0];
    apart = std::max(apart, ((together[row] - alone).abs().max() / alone.abs().max()).item<double>());
  }
  EXPECT_EQ(batching.note.find("rounding") != std::string::npos, apart > 1e-5) << apart;
}

TEST(Batching, OutputsWithoutABatchAxisRunAlone) {
  Graph graph;
  graph.opsets[""] = 17;
  ValueId x = input(graph, "x", {1, 4});
  graph.outputs = {node(graph, "Reshape", {x, constant(graph, "shape", at::tensor({int64_t(2), int64_t(2)}))})};
  EXPECT_EQ(find_batching(graph, random_batch(graph, 8), graph.outputs).kind, Batching::kOne);
  Graph fixed;
  fixed.opsets[""] = 17;
  fixed.outputs = {node(fixed, "Relu", {input(fixed, "x", {16, 4})})};
  EXPECT_EQ(find_batching(fixed, random_batch(fixed, 8), fixed.outputs).kind, Batching::kFixed);
  Graph time_first;  // axis 0 counts steps, not inputs
  time_first.opsets[""] = 17;
  time_first.outputs = {
      node(time_first, "Transpose", {input(time_first, "x", {3, 5, 4})}, {{"perm", std::vector<int64_t>{1, 0, 2}}})};
  EXPECT_THROW(find_batching(time_first, random_batch(time_first, 8), time_first.outputs), Unsupported);
  Graph huge;
  huge.opsets[""] = 17;
  huge.outputs = {node(huge, "Relu", {input(huge, "x", {int64_t(1) << 40, 4})})};
  EXPECT_THROW(find_batching(huge, random_batch(huge, 8), huge.outputs), InputError);
}

/// x · w or x + w, as a branch that reads both from outside.
model::Subgraph branch(const std::string& op) {
  auto body = std::make_shared<Graph>();
  for (const char* name : {"x", "w", "y"}) body->add_value(name);
  body->inputs = {0, 1}, body->outputs = {2};
  body->nodes = {Node{.name = op, .op = op, .domain = "", .opset = 17, .inputs = {0, 1}, .outputs = {2}}};
  return {body, {1, 2}};
}

TEST(Executor, BranchesRunInEveryModeAndPassGradients) {
  Graph graph;
  ValueId which = graph.add_value("which", model::Element::kBool), x = input(graph, "x", {1, 3});
  ValueId w = constant(graph, "w", at::tensor({2.f, 3.f, 4.f})), y = graph.add_value("y");
  Node choice{.name = "choice", .op = "If", .domain = "", .opset = 17, .inputs = {which, x, w}, .outputs = {y}};
  choice.attributes = {{"then_branch", branch("Mul")}, {"else_branch", branch("Add")}};
  choice.captured = 2;
  graph.nodes = {choice}, graph.inputs = {which, x}, graph.outputs = {y}, graph.opsets[""] = 17;
  at::Tensor given = at::tensor({1.f, -1.f, 0.5f}).unsqueeze(0), weight = graph.constant(w);
  for (bool taken : {true, false}) {
    at::Tensor condition = at::scalar_tensor(taken, at::kBool), expected = taken ? given * weight : given + weight;
    for (Mode mode : {Mode::kFast, Mode::kPlain})
      for (at::ScalarType precision : {at::kFloat, at::kDouble}) {
        Executor executor(graph, {.mode = mode, .precision = precision});
        at::Tensor found = executor.run(std::vector{condition, given})[0];
        EXPECT_EQ(found.scalar_type(), precision);
        EXPECT_TRUE(at::equal(found.to(at::kFloat), expected));
      }
    at::Tensor free = given.clone().requires_grad_(true);
    at::Tensor sum = Executor(graph, {.mode = Mode::kPlain}).run(std::vector{condition, free})[0].sum();
    at::Tensor gradient = torch::autograd::grad({sum}, {free})[0];
    EXPECT_TRUE(at::equal(gradient, taken ? weight.unsqueeze(0) : at::ones_like(given)));
  }
}

TEST(Starts, GradientsOfIdsBeginAtTheEmbedding) {
  model::Graph graph = zoo::make("textcnn");
  std::vector<model::ValueId> starts = find_starts(graph);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_NE(starts[0], graph.inputs[0]);
  const model::Value& input = graph.values[size_t(graph.inputs[0])];
  int64_t length = input.shape->at(1).size > 0 ? input.shape->at(1).size : 12;
  at::manual_seed(4);
  at::Tensor ids = at::randint(1, 20, {2, length}, at::kLong);
  at::Tensor embedded = Executor(graph, {.wanted = starts, .mode = Mode::kPlain, .precision = at::kDouble})
                            .run(std::vector{ids})[0]
                            .detach();
  Executor rest(graph, {.given = starts, .wanted = graph.outputs, .mode = Mode::kPlain, .precision = at::kDouble});
  auto score = [&](const at::Tensor& at) { return rest.run(std::vector{at})[0].select(1, 0).sum(); };
  at::Tensor free = embedded.clone().requires_grad_(true);
  at::Tensor gradient = torch::autograd::grad({score(free)}, {free})[0];
  at::Tensor direction = at::randn_like(embedded);
  double step = 1e-6, expected = (gradient * direction).sum().item<double>();
  double found =
      ((score(embedded + step * direction) - score(embedded - step * direction)) / (2 * step)).item<double>();
  EXPECT_NEAR(found, expected, 1e-4 * std::max(1.0, std::abs(expected)));
}

}  // namespace
}  // namespace netmend::executor
