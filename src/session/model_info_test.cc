#include "session/model_info.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "dataset/memory_dataset.h"
#include "onnx/writer.h"
#include "session/folder_for_test.h"
#include "session/session.h"
#include "session/split.h"
#include "zoo/zoo.h"

namespace netmend::session {
namespace {

TEST(ModelInfo, EveryNetworkOfTheZooRunsWithTheShapesItDeclares) {
  const FolderForTest folder;
  for (const std::string name : {"mlp:4-3-2", "lenet1", "lenet5", "mlp:1-1"}) {
    const model::Graph graph = zoo::make(name, {.seed = 1});
    onnx::write_model(graph, "m.onnx");
    const ModelInfo info = describe_model("m.onnx", "", {});
    EXPECT_EQ(info.error, "") << name;
    EXPECT_EQ(info.parameters, zoo::parameter_count(graph)) << name;
    EXPECT_EQ(info.nodes, int64_t(graph.nodes.size()));
    EXPECT_EQ(info.ran.size(), graph.nodes.size()) << name;
    int64_t operators = 0, by_layer = 0;
    for (const auto& [op, count] : info.operators) operators += count;
    for (const LayerInfo& layer : info.layers) by_layer += layer.parameters;
    EXPECT_EQ(operators, info.nodes);
    EXPECT_EQ(by_layer, info.parameters) << name;
    EXPECT_EQ(info.outputs.at(0).tried_shape.front(), 1) << name;
    EXPECT_EQ(info.outputs.at(0).tried_shape.back(), info.layers.back().units) << name;
    for (size_t l = 0; l < info.layers.size(); ++l)
      EXPECT_EQ(std::count_if(info.ran.begin(), info.ran.end(), [&](const NodeInfo& n) { return n.layer == int(l); }),
                1)
          << name << " " << info.layers[l].name;
  }
}

TEST(ModelInfo, AGivenShapeIsTaken) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("lenet5", {.seed = 1}), "m.onnx");
  const ModelInfo info = describe_model("m.onnx", "", {"image=7x1x28x28"});
  EXPECT_EQ(info.inputs.at(0).tried_shape, (std::vector<int64_t>{7, 1, 28, 28}));
  EXPECT_EQ(info.inputs.at(0).layout, "NCHW");
  EXPECT_EQ(info.outputs.at(0).tried_shape, (std::vector<int64_t>{7, 10}));
  const ModelInfo small = describe_model("m.onnx", "", {"image=1x1x3x3"});
  EXPECT_NE(small.error, "");
  ASSERT_GT(small.chain.size(), 1u);
  EXPECT_EQ(small.chain.front().name, "image");
  EXPECT_EQ(small.chain.front().shape, (std::vector<int64_t>{1, 1, 3, 3}));
  for (size_t i = 0; i + 1 < small.chain.size(); ++i) EXPECT_FALSE(small.chain[i].shape.empty());
  for (const char* wrong : {"image=", "image=1x-1x28x28", "image=1x1x28x99999999999999999999", "=1", "imag=1x1x28x28"})
    EXPECT_THROW(describe_model("m.onnx", "", {wrong}), InputError) << wrong;
}

TEST(ModelInfo, CostsFollowFromShapes) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("mlp:6-5-3", {.seed = 1}), "m.onnx");
  const ModelInfo one = describe_model("m.onnx", "", {});
  EXPECT_EQ(one.cost.flops, 2.0 * (6 * 5 + 5 * 3));
  EXPECT_EQ(one.cost.weight_bytes, 4.0 * (6 * 5 + 5 + 5 * 3 + 3));
  // At most a layer's input and output, or its output before and after relu, are needed at once.
  EXPECT_EQ(one.cost.activation_bytes, 4.0 * (6 + 5));
  double flops = 0;
  for (const NodeInfo& node : one.ran) flops += node.flops;
  EXPECT_EQ(flops, one.cost.flops);
  const ModelInfo nine = describe_model("m.onnx", "", {one.inputs.at(0).name + "=9x6"});
  EXPECT_EQ(nine.cost.flops, 9 * one.cost.flops);
  EXPECT_EQ(nine.cost.weight_bytes, one.cost.weight_bytes);
  EXPECT_EQ(nine.cost.activation_bytes, 9 * one.cost.activation_bytes);

  onnx::write_model(zoo::make("lenet5", {.seed = 1}), "m.onnx");
  const ModelInfo info = describe_model("m.onnx", "", {});
  for (const NodeInfo& node : info.ran) {
    if (node.layer < 0) continue;
    double outputs = 1;
    for (int64_t size : node.shape) outputs *= double(size);
    const LayerInfo& layer = info.layers[size_t(node.layer)];  // each output is a product with one unit's weights
    EXPECT_EQ(node.flops, 2 * outputs * double(layer.parameters - layer.units) / double(layer.units)) << layer.name;
  }
}

TEST(ModelInfo, OnlyThePartUpToAnOutputRuns) {
  const FolderForTest folder;
  const model::Graph graph = zoo::make("mlp:4-3-2", {.seed = 1});
  onnx::write_model(graph, "m.onnx");
  const std::string hidden = graph.values[size_t(graph.nodes.at(0).outputs.at(0))].name;
  const ModelInfo part = describe_model("m.onnx", hidden, {}), whole = describe_model("m.onnx", "", {});
  EXPECT_EQ(part.ran.size(), 1u);
  EXPECT_EQ(part.ran[0].shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(part.nodes, whole.nodes);
  EXPECT_GT(whole.ran.size(), 1u);
}

TEST(ModelInfo, AFileThatIsNoModelIsRefused) {
  const FolderForTest folder;
  folder.write("empty.onnx", "");
  folder.write("text.onnx", "not a model");
  onnx::write_model(zoo::make("mlp:4-3-2", {.seed = 1}), "m.onnx");
  std::filesystem::copy_file("m.onnx", "cut.onnx");
  std::filesystem::resize_file("cut.onnx", std::filesystem::file_size("cut.onnx") / 2);
  for (const char* file : {"empty.onnx", "text.onnx", "cut.onnx", "gone.onnx", "."})
    EXPECT_THROW(describe_model(file, "", {}), InputError) << file;
}

TEST(ChooseOutput, TakesAValueANodeOrTheFirst) {
  const model::Graph graph = zoo::make("mlp:4-3-2", {.seed = 1});
  const model::Node& first = graph.nodes.at(0);
  EXPECT_EQ(choose_output(graph, ""), graph.outputs.at(0));
  EXPECT_EQ(choose_output(graph, "logits"), graph.outputs.at(0));
  EXPECT_EQ(choose_output(graph, graph.values[size_t(first.outputs[0])].name), first.outputs[0]);
  EXPECT_EQ(choose_output(graph, first.name), first.outputs[0]);
  try {
    choose_output(graph, "logit");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean logits"), std::string::npos) << error.what();
  }
}

/// What a spec says wins over netmend.toml, and that over the model's metadata.
TEST(OpenData, TheSpecWinsOverTheFileAndTheFileOverTheModel) {
  model::Graph graph = zoo::make("mlp:784-3-10", {.seed = 1});
  Config config;
  auto scale = [&](const std::string& spec) {
    return open_data(dataset::parse_spec(spec), graph, config)->info().preprocess.scale.value_or(1);
  };
  graph.metadata["netmend.input.scale"] = "0.5";
  EXPECT_DOUBLE_EQ(scale("glyphs:test"), 0.5);
  config.input["scale"] = "0.25";
  EXPECT_DOUBLE_EQ(scale("glyphs:test"), 0.25);
  EXPECT_DOUBLE_EQ(scale("glyphs:test,scale=0.125"), 0.125);
  std::vector<std::string> told;
  open_data(dataset::parse_spec("glyphs:test"), graph, config, [&](const std::string& line) { told.push_back(line); });
  ASSERT_FALSE(told.empty());
  EXPECT_NE(told[0].find("scale=0.25"), std::string::npos) << told[0];
}

TEST(OpenData, ClassesAreNumberedInTheOrderOfTheFile) {
  const FolderForTest folder;
  folder.write("a.csv", "x,y\n1,cat: ü\n2,\"dog,big\"\n3,cat: ü\n4,owl\n");
  const model::Graph graph = zoo::make("mlp:1-3", {.seed = 1});
  Config config;
  config.classes = {"owl", "dog,big", "cat: ü"};
  const auto data = open_data(dataset::parse_spec("csv:a.csv,label=y"), graph, config);
  EXPECT_EQ(data->info().classes, config.classes);
  const at::Tensor labels = data->read(std::vector<int64_t>{0, 1, 2, 3}).labels;
  EXPECT_TRUE(at::equal(labels, at::tensor({2, 1, 2, 0}, at::kLong))) << labels;
}

TEST(OpenData, EmptyDataIsRefused) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("mlp:1-2", {.seed = 1}), "m.onnx");
  folder.write("none.csv", "x,y\n");
  folder.write("empty.csv", "");
  for (const char* file : {"csv:none.csv,label=y", "csv:empty.csv,label=y"}) {
    Request request;
    request.model = "m.onnx", request.data = file, request.quiet = true;
    Session session(request);
    EXPECT_THROW(session.test(), InputError) << file;
  }
}

}  // namespace
}  // namespace netmend::session
