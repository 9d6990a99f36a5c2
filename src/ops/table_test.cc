#include <gtest/gtest.h>

#include "ops/node_for_test.h"

namespace netmend::ops {
namespace {

TEST(Table, FindsByNameAndDomain) {
  ASSERT_TRUE(find("", "Relu"));
  EXPECT_EQ(find("", "Relu")->name, "Relu");
  EXPECT_EQ(find("ai.onnx", "Relu"), find("", "Relu"));
  EXPECT_EQ(find("", "relu"), nullptr);
  EXPECT_EQ(find("", "Zzz"), nullptr);
  EXPECT_EQ(find("com.microsoft", "Relu"), nullptr);
  EXPECT_NE(find("com.microsoft", "Gelu"), find("", "Gelu"));
  for (const Op& op : table()) EXPECT_EQ(find(op.domain, op.name), &op);
}

TEST(Table, IsSortedAndHasNoOperatorTwice) {
  auto key = [](const Op& op) { return std::pair(op.name, op.domain); };
  for (size_t i = 1; i < table().size(); ++i) EXPECT_LT(key(table()[i - 1]), key(table()[i])) << table()[i].name;
}

TEST(Table, UnitsBelongToLinearOperators) {
  for (const Op& op : table()) EXPECT_EQ(op.kind == Kind::kLinear, op.units != nullptr) << op.name;
}

model::Node node_of(std::string op, std::string name, std::vector<model::ValueId> in, std::vector<model::ValueId> out,
                    std::string domain = "", int opset = 17) {
  return {.name = std::move(name),
          .op = std::move(op),
          .domain = std::move(domain),
          .opset = opset,
          .inputs = std::move(in),
          .outputs = std::move(out)};
}

TEST(Table, NamesEverythingUnsupportedAtOnce) {
  model::Graph graph;
  for (const char* name : {"x", "features", "boxes", "trees", "y"}) graph.add_value(name);
  graph.inputs = {0}, graph.outputs = {4};
  graph.opsets[""] = 17;
  graph.nodes = {node_of("Relu", "act", {0}, {1}), node_of("TfIdfVectorizer", "/post/nms", {1}, {2}),
                 node_of("TfIdfVectorizer", "/post/nms2", {2}, {4}),
                 node_of("TreeEnsembleClassifier", "forest", {1}, {3}, "ai.onnx.ml", 3)};
  try {
    require_supported(graph);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "2 operators are not supported: TfIdfVectorizer (2 nodes, /post/nms, opset 17), "
                 "ai.onnx.ml.TreeEnsembleClassifier (1 node, forest, opset 3)");
    EXPECT_EQ(error.hint(), "--output features ends the network before that.");
  }
  EXPECT_NO_THROW(require_supported(graph, {true, false, false, false}));
}

TEST(Table, NamesWhatIsUnsupportedInsideABody) {
  auto body = std::make_shared<model::Graph>();
  for (const char* name : {"x", "y"}) body->add_value(name);
  body->inputs = {0}, body->outputs = {1};
  body->nodes = {node_of("TfIdfVectorizer", "words", {0}, {1})};
  model::Graph graph;
  for (const char* name : {"condition", "x", "y"}) graph.add_value(name);
  graph.inputs = {0, 1}, graph.outputs = {2};
  graph.nodes = {node_of("If", "choice", {0, 1}, {2})};
  graph.nodes[0].attributes = {{"then_branch", model::Subgraph{body, {1}}},
                               {"else_branch", model::Subgraph{body, {1}}}};
  try {
    require_supported(graph);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "1 operator is not supported: TfIdfVectorizer (2 nodes, words, opset 17)");
  }
}

TEST(Table, RefusesOpsetsOutsideWhatIsKnown) {
  NodeForTest old{.op = "Relu", .inputs = {reals({1})}, .opset = 6}, fresh = old;
  fresh.opset = kNewestOpset + 1;
  EXPECT_THROW(require_supported(old.graph()), InputError);
  EXPECT_THROW(require_supported(fresh.graph()), InputError);
  EXPECT_THROW(old.run(), InputError);
  NodeForTest withdrawn{.op = "Upsample", .inputs = {reals({1}), reals({2})}, .opset = 10};
  EXPECT_THROW(require_supported(withdrawn.graph()), InputError);
  withdrawn.opset = 9;
  EXPECT_NO_THROW(require_supported(withdrawn.graph()));
}

TEST(NodeView, AttributeOfAnotherTypeIsAnError) {
  NodeForTest node{"LeakyRelu", {reals({-1})}, {{"alpha", int64_t(1)}}};
  try {
    node.run();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "LeakyRelu node: attribute alpha is an integer, expected a float");
  }
}

Units units_of(NodeForTest node) {
  model::Graph graph = node.graph();
  auto units = find(node.domain, node.op)->units(NodeView(graph, graph.nodes[0]));
  EXPECT_TRUE(units.has_value());
  return units.value_or(Units{});
}

TEST(Units, OfEachLinearOperator) {
  Units conv = units_of({.op = "Conv",
                         .inputs = {at::Tensor(at::zeros({1, 3, 5, 5})), at::zeros({8, 3, 3, 3}), at::zeros({8})},
                         .constants = {1, 2}});
  EXPECT_EQ(conv.count, 8);
  EXPECT_EQ(conv.weight_axis, 0);
  EXPECT_EQ(conv.bias_slot, 2);
  Units gemm = units_of({.op = "Gemm", .inputs = {at::zeros({1, 3}), at::zeros({3, 7})}, .constants = {1}});
  EXPECT_EQ(gemm.count, 7);
  EXPECT_EQ(gemm.weight_axis, 1);
  Units turned = units_of({.op = "Gemm",
                           .inputs = {at::zeros({1, 3}), at::zeros({7, 3})},
                           .attributes = {{"transB", int64_t(1)}},
                           .constants = {1}});
  EXPECT_EQ(turned.count, 7);
  EXPECT_EQ(turned.weight_axis, 0);
  Units right = units_of({.op = "MatMul", .inputs = {at::zeros({1, 4, 3}), at::zeros({3, 7})}, .constants = {1}});
  EXPECT_EQ(right.count, 7);
  EXPECT_EQ(right.unit_axis, -1);
  Units left = units_of({.op = "MatMul", .inputs = {at::zeros({7, 3}), at::zeros({1, 3, 4})}, .constants = {0}});
  EXPECT_EQ(left.count, 7);
  EXPECT_EQ(left.unit_axis, -2);
  EXPECT_EQ(left.weight_slot, 0);
  Units lstm = units_of({.op = "LSTM",
                         .inputs = {at::zeros({4, 1, 2}), at::zeros({2, 20, 2}), at::zeros({2, 20, 5})},
                         .constants = {1, 2}});
  EXPECT_EQ(lstm.count, 10);
  EXPECT_EQ(lstm.batch_axis, 2);
  Units turned_conv =
      units_of({.op = "ConvTranspose", .inputs = {at::zeros({1, 3, 5, 5}), at::zeros({3, 6, 2, 2})}, .constants = {1}});
  EXPECT_EQ(turned_conv.count, 6);
  EXPECT_EQ(turned_conv.weight_axis, 1);
  Units causal =
      units_of({.op = "CausalConvWithState", .inputs = {at::zeros({1, 3, 5}), at::zeros({3, 1, 4})}, .constants = {1}});
  EXPECT_EQ(causal.count, 3);
  EXPECT_EQ(causal.bias_slot, -1);
  Units deformable =
      units_of({.op = "DeformConv",
                .inputs = {at::zeros({1, 3, 5, 5}), at::zeros({8, 3, 2, 2}), at::zeros({1, 8, 4, 4}), at::zeros({8})},
                .constants = {1, 3}});
  EXPECT_EQ(deformable.count, 8);
  EXPECT_EQ(deformable.bias_slot, 3);
}

}  // namespace
}  // namespace netmend::ops
