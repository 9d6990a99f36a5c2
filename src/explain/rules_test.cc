// Rules on numbers worked out by hand, the table against the operators, and what has rules of its own: gates,
// attention, norms, recurrent layers.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <set>

#include "base/error.h"
#include "executor/executor.h"
#include "explain/flow.h"
#include "explain/networks_for_test.h"
#include "explain/relevance.h"

namespace netmend::explain {
namespace {

using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;
using Attributes = std::map<std::string, model::Attribute, std::less<>>;

/// Graphs node by node, with constants of our choice.
struct Sketch {
  Graph graph;
  Sketch() { graph.opsets[""] = 17; }
  ValueId input(const std::string& name, std::vector<int64_t> shape) {
    ValueId id = graph.add_value(name, model::Element::kFloat);
    graph.values[size_t(id)].shape.emplace();
    graph.values[size_t(id)].shape->push_back({-1, "N"});
    for (int64_t size : shape) graph.values[size_t(id)].shape->push_back({size, ""});
    graph.inputs.push_back(id);
    return id;
  }
  ValueId constant(const at::Tensor& value) {
    ValueId id = graph.add_value(fmt::format("c{}", graph.values.size()), model::element_of(value.scalar_type()));
    graph.constants[id] = {value, model::element_of(value.scalar_type()), {}, false};
    return id;
  }
  ValueId node(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}, size_t outputs = 1,
               const std::string& domain = "", int opset = 17) {
    Node node{.name = fmt::format("n{}", graph.nodes.size()), .op = op, .domain = domain, .opset = opset};
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    for (size_t i = 0; i < outputs; ++i)
      node.outputs.push_back(graph.add_value(fmt::format("v{}", graph.values.size())));
    graph.nodes.push_back(node);
    return node.outputs[0];
  }
  Explained run(ValueId output, const at::Tensor& x, const std::string& rule = "z", Method method = Method::kRelevance,
                std::vector<ValueId> wanted = {}) {
    graph.outputs = {output};
    Options options;
    options.method = method;
    options.rules = parse_rules(rule);
    options.precision = at::kDouble;
    return Explainer(graph, {output, output}, wanted.empty() ? graph.inputs : wanted, options).run({{x}});
  }
};

at::Tensor row(std::vector<double> values) { return at::tensor(values, at::kDouble).unsqueeze(0); }
at::Tensor floats(at::IntArrayRef shape, uint64_t seed) { return random_tensor(shape.vec(), seed).to(at::kFloat); }

TEST(Rules, GiveWhatIsWorkedOutByHand) {
  // Contributions 3, −2, −1, bias ½: the sum is ½, its positive part 3½, its negative part −3.
  struct Case {
    const char* rule;
    std::vector<double> expected;
  };
  const double g = 0.5 / (0.5 + 0.25 * 3.5);
  for (const Case& c : {Case{"z", {3, -2, -1}}, Case{"epsilon:0.5", {1.5, -1, -0.5}},
                        Case{"gamma:0.25", {3 * 1.25 * g, -2 * g, -1 * g}},
                        Case{"alpha-beta:2", {2 * 3 / 3.5 * 0.5, -2.0 / 3 * 0.5, -1.0 / 3 * 0.5}},
                        Case{"alpha-beta:3", {3 * 3 / 3.5 * 0.5, -2 * 2.0 / 3 * 0.5, -2 * 1.0 / 3 * 0.5}},
                        Case{"flat", {0.5 / 3, 0.5 / 3, 0.5 / 3}}, Case{"w2", {0.5 * 9 / 11, 0.5 / 11, 0.5 / 11}}})
    for (const bool joined : {true, false}) {  // one node, or a product and a sum
      Sketch s;
      ValueId x = s.input("x", {3}), w = s.constant(at::tensor({3.f, -1.f, 1.f}).unsqueeze(1)),
              b = s.constant(at::tensor({0.5f}));
      ValueId y = joined ? s.node("Gemm", {x, w, b}) : s.node("Add", {s.node("MatMul", {x, w}), b});
      at::Tensor found = s.run(y, row({1, 2, -1}), c.rule).relevance[0];
      EXPECT_TRUE(at::allclose(found, row(c.expected), 1e-6)) << c.rule << joined << found;
    }
}

TEST(Rules, SpreadBiasesGoToTheInputsInEqualParts) {
  // The same sum of ½ with its bias of ½: a sixth of the bias's part for each input, one that is 0 too.
  struct Case {
    const char* rule;
    std::vector<double> kept;  ///< without the bias's part
    double bias;               ///< all of the bias's part
  };
  const double g = 0.5 / (0.5 + 0.25 * 3.5);
  for (const Case& c :
       {Case{"z", {3, -2, -1}, 0.5}, Case{"epsilon:0.5", {1.5, -1, -0.5}, 0.25},
        Case{"gamma:0.25", {3 * 1.25 * g, -2 * g, -1 * g}, 0.5 * 1.25 * g},
        Case{"alpha-beta:2", {2 * 3 / 3.5 * 0.5, -2.0 / 3 * 0.5, -1.0 / 3 * 0.5}, 2 * 0.5 / 3.5 * 0.5}}) {
    Sketch s;
    ValueId x = s.input("x", {3}), w = s.constant(at::tensor({3.f, -1.f, 1.f}).unsqueeze(1)),
            b = s.constant(at::tensor({0.5f}));
    s.graph.outputs = {s.node("Gemm", {x, w, b})};
    Options options;
    options.rules = parse_rules(c.rule);
    for (Rule* rule : {&options.rules.dense, &options.rules.conv, &options.rules.first}) rule->spread_bias = true;
    options.precision = at::kDouble;
    Explained e =
        Explainer(s.graph, {s.graph.outputs[0], s.graph.outputs[0]}, s.graph.inputs, options).run({{row({1, 2, -1})}});
    std::vector<double> expected = c.kept;
    for (double& one : expected) one += c.bias / 3;
    EXPECT_TRUE(at::allclose(e.relevance[0], row(expected), 1e-6)) << c.rule << e.relevance[0];
    if (std::string(c.rule) == "z") {
      EXPECT_NEAR(e.absorbed, 0, 1e-9);  // nothing is lost
    }
  }
  EXPECT_TRUE(parse_bias("spread"));
  EXPECT_FALSE(parse_bias("keep"));
  EXPECT_THROW(parse_bias("spraed"), InputError);
}

TEST(Rules, CompositeTakesEachKindOfLayer) {
  // 2 inputs → (1, −1; 1, 1) → rectified → (2; 1), ε = ½, first layer flat. Inputs 3, 1: hidden 4, 0 (−2 rectified), …
  Sketch s;
  ValueId x = s.input("x", {2}), w1 = s.constant(at::tensor({1.f, -1.f, 1.f, 1.f}).reshape({2, 2})),
          w2 = s.constant(at::tensor({2.f, 1.f}).reshape({2, 1}));
  ValueId hidden = s.node("Relu", {s.node("Gemm", {x, w1})});
  ValueId y = s.node("Gemm", {hidden, w2});
  Explained e = s.run(y, row({3, 1}), "dense=epsilon:0.5,first=flat", Method::kRelevance, {s.graph.inputs[0], hidden});
  EXPECT_TRUE(at::allclose(e.start, at::tensor({8.0}, at::kDouble)));
  EXPECT_TRUE(at::allclose(e.relevance[1], row({8 / 8.5 * 8, 0}))) << e.relevance[1];
  EXPECT_TRUE(at::allclose(e.relevance[0], row({8 / 8.5 * 4, 8 / 8.5 * 4}))) << e.relevance[0];
  EXPECT_NEAR(e.absorbed, 8 - 64 / 8.5, 1e-9);
}

TEST(Rules, AreReadAndWritten) {
  EXPECT_EQ(rules_text(parse_rules("")), "z");
  EXPECT_EQ(rules_text(parse_rules("alpha-beta")), "alpha-beta:3");
  EXPECT_EQ(rules_text(parse_rules("composite")), "dense=epsilon:0.01,conv=alpha-beta:1,first=flat");
  for (const char* text : {"epsilon:0.5", "dense=gamma:0.1,conv=w2,first=flat"})
    EXPECT_EQ(rules_text(parse_rules(text)), text);
  for (const char* text : {"epsilom", "z:3", "epsilon:-1", "gamma:x", "alpha-beta:0.5", "conv", "convv=z",
                           "dense=z,flat", "epsilon:1:2", "epsilon:nan"})
    EXPECT_THROW(parse_rules(text), InputError) << text;
}

TEST(Table, HasARowForEveryOperator) {
  // Non-differentiable ones that still carry a quantity: steps pass what they get.
  const std::set<std::string_view> steps = {"Ceil", "Floor", "Round", "Sign"};
  for (const ops::Op& op : ops::table()) {
    const Row* row = find_row(op.name);
    ASSERT_NE(row, nullptr) << op.name << " has neither a rule nor a reason";
    EXPECT_FALSE(row->prepare && row->refused) << op.name;
    EXPECT_TRUE(!row->prepare || op.differentiable || steps.count(op.name)) << op.name;
    // What stops relevance without a word must not be a quantity.
    EXPECT_TRUE(row->prepare || row->refused || !op.differentiable || op.name == "OneHot") << op.name;
  }
}

TEST(Table, RefusesByNameWhatRelevanceCannotPass) {
  for (const ops::Op& op : ops::table()) {
    if (!find_row(op.name)->refused) continue;
    Sketch s;
    ValueId x = s.input("x", {3});
    std::vector<ValueId> inputs(9, x);  // whatever it takes: it is refused before it runs
    s.node(std::string(op.name), inputs);
    s.graph.nodes.back().domain = std::string(op.domain);
    ValueId y = s.graph.nodes.back().outputs[0];
    try {
      s.run(y, row({1, 2, 3}));
      ADD_FAILURE() << op.name << " was not refused";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(op.name), std::string::npos) << error.what();
    }
  }
}

/// A derivative of `f` at x, for what `f` leaves attached.
at::Tensor by_hand(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f) {
  at::AutoGradMode grad(true);
  at::Tensor leaf = x.detach().requires_grad_();
  return x * torch::autograd::grad({f(leaf).sum()}, {leaf})[0];
}

TEST(Activations, PassTheSlopeFromZero) {
  for (const char* op : {"Abs",
                         "Asinh",
                         "Atan",
                         "Celu",
                         "Elu",
                         "Erf",
                         "Exp",
                         "Gelu",
                         "HardSigmoid",
                         "HardSwish",
                         "LeakyRelu",
                         "Mish",
                         "Relu",
                         "Selu",
                         "Sigmoid",
                         "Sin",
                         "Softplus",
                         "Softsign",
                         "Tanh",
                         "Cos",
                         "Sinh",
                         "Cosh",
                         "ThresholdedRelu",
                         "Shrink",
                         "Round",
                         "Floor",
                         "Ceil",
                         "Sign"}) {
    Sketch s;
    ValueId x = s.input("x", {5});
    ValueId y = s.node(op, {x}, {}, 1, "", std::string(op) == "Gelu" ? 20 : 18);
    ValueId sum = s.node("ReduceSum", {y, s.constant(at::tensor({1}, at::kLong))});
    at::Tensor at = row({-2.3, -0.4, 0, 0.7, 1.9});
    Explained e = s.run(sum, at);
    executor::Request request{{}, {y}, executor::Mode::kPlain, at::kDouble};
    executor::Executor executor(s.graph, request);
    at::Tensor above = executor.run({{at}})[0] - executor.run({{at::zeros_like(at)}})[0];
    // All of f(x) − f(0) goes to x, where x is not 0; f(0) stays.
    EXPECT_TRUE(at::allclose(e.relevance[0], above, 1e-3, 1e-6)) << op << e.relevance[0] << above;
    EXPECT_TRUE(at::isfinite(e.relevance[0]).all().item<bool>()) << op;
  }
}

TEST(Products, TreatGatesAsConstants) {
  at::Tensor at = random_tensor({2, 6}, 5);
  Sketch s;
  ValueId x = s.input("x", {6});
  ValueId w = s.constant(floats({6, 6}, 1)), v = s.constant(floats({6, 6}, 2));
  ValueId signal = s.node("MatMul", {x, w}), gate = s.node("Sigmoid", {s.node("MatMul", {x, v})});
  ValueId half = s.node("Mul", {gate, s.constant(at::tensor({0.5f}))});
  ValueId sum = s.node("ReduceSum", {s.node("Mul", {half, signal}), s.constant(at::tensor({1}, at::kLong))});
  at::Tensor wd = s.graph.constant(w).to(at::kDouble), vd = s.graph.constant(v).to(at::kDouble);
  at::Tensor expected = by_hand(
      at, [&](const at::Tensor& x) { return at::matmul(x, wd) * at::sigmoid(at::matmul(x, vd)).detach() * 0.5; });
  EXPECT_TRUE(at::allclose(s.run(sum, at).relevance[0], expected));
  // Equals share evenly: all of x·x goes to x.
  Sketch t;
  ValueId z = t.input("x", {6});
  ValueId square = t.node("ReduceSum", {t.node("Mul", {z, z}), t.constant(at::tensor({1}, at::kLong))});
  EXPECT_TRUE(at::allclose(t.run(square, at).relevance[0], at * at));
}

TEST(Attention, HoldsTheWeights) {
  at::Tensor at = random_tensor({2, 4, 6}, 9);
  Sketch s;
  ValueId x = s.input("x", {4, 6});
  ValueId q = s.constant(floats({6, 6}, 1)), k = s.constant(floats({6, 6}, 2)), v = s.constant(floats({6, 6}, 3));
  ValueId turned = s.node("Transpose", {s.node("MatMul", {x, k})}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  ValueId weights = s.node("Softmax", {s.node("MatMul", {s.node("MatMul", {x, q}), turned})}, {{"axis", int64_t(-1)}});
  ValueId mixed = s.node("Add", {x, s.node("MatMul", {weights, s.node("MatMul", {x, v})})});
  ValueId sum = s.node("ReduceSum", {mixed, s.constant(at::tensor({1, 2}, at::kLong))});
  auto d = [&](ValueId id) { return s.graph.constant(id).to(at::kDouble); };
  at::Tensor expected = by_hand(at, [&](const at::Tensor& x) {
    at::Tensor scores = at::matmul(at::matmul(x, d(q)), at::matmul(x, d(k)).transpose(1, 2));
    return x + at::matmul(at::softmax(scores, -1).detach(), at::matmul(x, d(v)));
  });
  Explained e = s.run(sum, at);
  EXPECT_TRUE(at::allclose(e.relevance[0], expected));
  EXPECT_NEAR(e.absorbed, 0, 1e-9);  // nothing is lost: only the way is held
}

TEST(Norms, HoldWhatTheyDivideBy) {
  at::Tensor at = random_tensor({2, 4, 5}, 4);
  auto expect = [&](const char* op, std::vector<at::Tensor> constants, Attributes attributes, int opset,
                    const std::function<at::Tensor(const at::Tensor&)>& form) {
    Sketch s;
    ValueId x = s.input("x", {4, 5});
    std::vector<ValueId> inputs{x};
    for (const at::Tensor& constant : constants) inputs.push_back(s.constant(constant));
    ValueId y = s.node(op, inputs, attributes, 1, "", opset);
    ValueId weighted = s.node("Mul", {y, s.constant(floats({4, 5}, 8))});
    ValueId sum = s.node("ReduceSum", {weighted, s.constant(at::tensor({1, 2}, at::kLong))});
    at::Tensor weights = floats({4, 5}, 8).to(at::kDouble);
    at::Tensor expected = by_hand(at, [&](const at::Tensor& x) { return form(x) * weights; });
    EXPECT_TRUE(at::allclose(s.run(sum, at).relevance[0], expected, 1e-6, 1e-8)) << op;
    // The form is the operator's: its value agrees where nothing is held.
    executor::Executor executor(s.graph, {{}, {y}, executor::Mode::kPlain, at::kDouble});
    EXPECT_TRUE(at::allclose(executor.run({{at}})[0], form(at), 1e-6, 1e-8)) << op;
  };
  at::Tensor scale = floats({5}, 6).abs(), offset = floats({5}, 7), per_channel = floats({4}, 6).abs(),
             shift = floats({4}, 2);
  auto over = [](const at::Tensor& x, at::IntArrayRef axes, double epsilon) {
    return (x - x.mean(axes, true)) * at::rsqrt(at::var(x, axes, false, true) + epsilon).detach();
  };
  auto along = [](const at::Tensor& v) { return v.to(at::kDouble).reshape({1, -1, 1}); };
  expect("LayerNormalization", {scale, offset}, {}, 17,
         [&](const at::Tensor& x) { return over(x, {2}, 1e-5) * scale.to(at::kDouble) + offset.to(at::kDouble); });
  expect("InstanceNormalization", {per_channel, shift}, {}, 17,
         [&](const at::Tensor& x) { return over(x, {2}, 1e-5) * along(per_channel) + along(shift); });
  expect("GroupNormalization", {per_channel, shift}, {{"num_groups", int64_t(2)}}, 21, [&](const at::Tensor& x) {
    return over(x.reshape({2, 2, -1}), {2}, 1e-5).reshape(x.sizes()) * along(per_channel) + along(shift);
  });
  expect("RMSNormalization", {scale}, {}, 23, [&](const at::Tensor& x) {
    return x * at::rsqrt((x * x).mean(at::IntArrayRef{2}, true) + 1e-5).detach() * scale.to(at::kDouble);
  });
  expect("LpNormalization", {}, {{"axis", int64_t(2)}, {"p", int64_t(2)}}, 17,
         [&](const at::Tensor& x) { return x / x.norm(2, {2}, true).detach(); });
  expect("BatchNormalization", {per_channel, shift, floats({4}, 11), floats({4}, 12).abs() + 0.1}, {}, 17,
         [&](const at::Tensor& x) {
           at::Tensor mean = along(floats({4}, 11)), variance = along(floats({4}, 12).abs() + 0.1);
           return (x - mean) / at::sqrt(variance + 1e-5) * along(per_channel) + along(shift);
         });
}

TEST(Recurrent, ConservesWithoutBiasesAndHoldsItsGates) {
  at::Tensor at = random_tensor({3, 6, 4}, 4);  // batch × time × features
  struct Case {
    const char* op;
    int64_t gates;
    Attributes attributes;
  };
  for (const Case& c : {Case{"LSTM", 4, {}}, Case{"GRU", 3, {}}, Case{"GRU", 3, {{"linear_before_reset", int64_t(1)}}},
                        Case{"RNN", 1, {}}, Case{"LSTM", 4, {{"direction", std::string("bidirectional")}}}}) {
    const int64_t directions = c.attributes.count("direction") ? 2 : 1;
    Sketch s;
    ValueId x = s.input("x", {6, 4});
    ValueId turned = s.node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
    Attributes attributes = c.attributes;
    attributes["hidden_size"] = int64_t(5);
    ValueId h = s.node(c.op,
                       {turned, s.constant(floats({directions, 5 * c.gates, 4}, 1)),
                        s.constant(floats({directions, 5 * c.gates, 5}, 2) * 0.4)},
                       attributes);
    ValueId sum = s.node("ReduceSum", {h, s.constant(at::tensor({0, 1, 3}, at::kLong))}, {{"keepdims", int64_t(0)}});
    sum = s.node("Unsqueeze", {sum, s.constant(at::tensor({1}, at::kLong))});
    Explained e = s.run(sum, at);
    at::Tensor kept = e.relevance[0].flatten(1).sum(1);
    EXPECT_LT((kept - e.start).abs().max().item<double>(), 1e-9) << c.op;
    // Unlike the derivative, which the gates are part of.
    Explained gradients = s.run(sum, at, "z", Method::kGradient);
    EXPECT_GT((gradients.relevance[0].flatten(1).sum(1) - gradients.start).abs().max().item<double>(), 1e-3) << c.op;
  }
}

TEST(Integrated, AddsUpFromZeroToTheInput) {
  Sketch s;
  ValueId x = s.input("x", {6});
  ValueId hidden = s.node("Tanh", {s.node("Gemm", {x, s.constant(floats({6, 5}, 1)), s.constant(floats({5}, 2))})});
  ValueId deeper =
      s.node("Sigmoid", {s.node("Gemm", {hidden, s.constant(floats({5, 4}, 3)), s.constant(floats({4}, 4))})});
  ValueId y = s.node("Gemm", {deeper, s.constant(floats({4, 3}, 5))});
  at::Tensor at = random_tensor({7, 6}, 6);
  Explained e = s.run(y, at, "z", Method::kIntegrated, {x, hidden, deeper});
  executor::Executor executor(s.graph, {{}, {y}, executor::Mode::kPlain, at::kDouble});
  at::Tensor from = executor.run({{at::zeros_like(at)}})[0].gather(1, e.classes.unsqueeze(1)).squeeze(1);
  for (const at::Tensor& relevance : e.relevance)
    EXPECT_LT((relevance.sum(1) - (e.start - from)).abs().max().item<double>(), 2e-3);
  EXPECT_NEAR(e.absorbed, from.sum().item<double>(), 1e-2);
}

TEST(Gradient, IsTheDerivativeTimesTheValue) {
  Sketch s;
  ValueId x = s.input("x", {6});
  ValueId w = s.constant(floats({6, 5}, 1)), v = s.constant(floats({5, 3}, 3));
  ValueId hidden = s.node("Sigmoid", {s.node("MatMul", {x, w})});
  ValueId y = s.node("Softmax", {s.node("Gemm", {hidden, v})}, {{"axis", int64_t(1)}});
  at::Tensor at = random_tensor({4, 6}, 6), classes = at::tensor({0, 1, 2, int(kLeftOut)}, at::kLong);
  s.graph.outputs = {y};
  Options options;
  options.method = Method::kGradient;
  options.precision = at::kDouble;
  Explained e = Explainer(s.graph, {y, y}, s.graph.inputs, options).run({{at}}, classes);
  at::Tensor expected = by_hand(at, [&](const at::Tensor& x) {
    at::Tensor p = at::softmax(at::matmul(at::sigmoid(at::matmul(x, s.graph.constant(w).to(at::kDouble))),
                                          s.graph.constant(v).to(at::kDouble)),
                               1);
    return p.narrow(0, 0, 3).gather(1, at::tensor({0, 1, 2}, at::kLong).unsqueeze(1));
  });
  EXPECT_TRUE(at::allclose(e.relevance[0], expected));
}

TEST(Rules, WhatAProductAddsMayComeFromTheInputs) {
  at::Tensor at = random_tensor({2, 4}, 5);
  Sketch s;
  ValueId x = s.input("x", {4});
  ValueId y = s.node("Gemm", {x, s.constant(floats({4, 4}, 1)), x});
  ValueId sum = s.node("ReduceSum", {y, s.constant(at::tensor({1}, at::kLong))});
  Explained e = s.run(sum, at);
  EXPECT_NEAR(e.absorbed, 0, 1e-9);
  EXPECT_LT((e.relevance[0].sum(1) - e.start).abs().max().item<double>(), 1e-9);
}

TEST(Explainer, RefusesWhatHasNoRelevance) {
  Sketch s;
  ValueId ids = s.input("ids", {4});
  s.graph.values[size_t(ids)].type = model::Element::kInt64;
  ValueId words = s.node("Gather", {s.constant(floats({9, 3}, 1)), ids});
  ValueId y = s.node("ReduceSum", {words, s.constant(at::tensor({1}, at::kLong))}, {{"keepdims", int64_t(0)}});
  s.graph.outputs = {y};
  at::Tensor given = at::tensor({1, 2, 3, 8}, at::kLong).unsqueeze(0);
  EXPECT_THROW(Explainer(s.graph, {y, y}, {ids}), InputError);
  Explained e = Explainer(s.graph, {y, y}, {words}).run({{given}});
  EXPECT_NEAR(e.relevance[0].sum().item<double>(), e.start.item<double>(), 1e-5);
  EXPECT_THROW(Explainer(s.graph, {words, words}, {words}).run({{given}}), InputError);  // four predictions per input
}

TEST(Explainer, OneOutputSaysYesOrNo) {
  Sketch s;
  ValueId x = s.input("x", {2});
  ValueId z = s.node("Gemm", {x, s.constant(at::tensor({1.f, -2.f}).unsqueeze(1))});
  ValueId y = s.node("Sigmoid", {z});
  s.graph.outputs = {y};
  executor::Head head = executor::find_head(s.graph, y);
  at::Tensor at = at::tensor({3.f, 1.f, 1.f, 3.f}).reshape({2, 2});  // logits 1 and −5
  Explained e = Explainer(s.graph, head, s.graph.inputs).run({{at}});
  EXPECT_TRUE(at::equal(e.classes, at::tensor({1, 0}, at::kLong)));
  EXPECT_TRUE(at::allclose(e.start, at::tensor({1.f, 5.f})));
  EXPECT_TRUE(at::allclose(e.relevance[0], at::tensor({3.f, -2.f, -1.f, 6.f}).reshape({2, 2})));
  EXPECT_THROW(Explainer(s.graph, head, s.graph.inputs).run({{at}}, at::tensor({2, 0}, at::kLong)), InputError);
}

TEST(Explainer, LeavesOutWhatIsNotANumber) {
  Graph graph = random_network(1);
  at::Tensor x = random_tensor({3, 2, 8, 8}, 1).to(at::kFloat);
  Explained sound = Explainer(graph, head_of(graph), graph.inputs).run({{x}});
  x[1][0][0][0] = NAN;
  Explained e = Explainer(graph, head_of(graph), graph.inputs).run({{x}});
  EXPECT_EQ(e.classes[1].item<int64_t>(), kLeftOut);
  EXPECT_TRUE(std::isfinite(e.absorbed));
  EXPECT_TRUE(at::allclose(e.relevance[0][2], sound.relevance[0][2], 1e-4, 1e-6));
}

}  // namespace
}  // namespace netmend::explain
