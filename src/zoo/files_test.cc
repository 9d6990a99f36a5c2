// Every architecture runs, and is the same network after a trip through a file.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "executor/executor.h"
#include "executor/layers.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "zoo/zoo.h"

namespace netmend::zoo {
namespace {

at::Tensor random_input(const model::Graph& graph) {
  const model::Value& input = graph.values[size_t(graph.inputs[0])];
  std::vector<int64_t> shape{3};
  for (size_t axis = 1; axis < input.shape->size(); ++axis) shape.push_back((*input.shape)[axis].size);
  at::manual_seed(1);
  return input.type == model::Element::kInt64 ? at::randint(0, 1000, shape, at::kLong) : at::randn(shape);
}

class ZooFiles : public testing::TestWithParam<std::string> {};

TEST_P(ZooFiles, RunsAndSurvivesAFile) {
  model::Graph graph = make(GetParam());
  std::vector<at::Tensor> input{random_input(graph)};
  at::NoGradGuard no_grad;
  at::Tensor answers = executor::Executor(graph).run(input)[0];
  EXPECT_EQ(answers.size(0), 3);
  EXPECT_EQ(answers.size(1), (*graph.values[size_t(graph.outputs[0])].shape)[1].size);
  EXPECT_TRUE(answers.isfinite().all().item<bool>());

  std::string path = testing::TempDir() + "netmend_zoo_test.onnx";
  onnx::write_model(graph, path);
  model::Graph back = onnx::read_model(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(executor::Executor(back).run(input)[0].equal(answers));
  EXPECT_EQ(parameter_count(back), parameter_count(graph));
}

TEST_P(ZooFiles, LayersAreNamedAfterTheirNodes) {
  model::Graph graph = make(GetParam());
  for (const model::Layer& layer : executor::find_layers(graph))
    EXPECT_EQ(layer.name, graph.nodes[size_t(layer.node)].name);
  int64_t found = 0;
  for (model::ValueId id : executor::find_parameters(graph)) found += graph.constant(id).numel();
  EXPECT_EQ(found, parameter_count(graph));
}

INSTANTIATE_TEST_SUITE_P(All, ZooFiles, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(Zoo, ResNetHasTheUnitsOfThePaper) {
  int64_t units = 0, layers = 0;
  for (const model::Layer& layer : executor::find_layers(make("resnet20"))) units += layer.units, ++layers;
  EXPECT_EQ(units, 794);
  EXPECT_EQ(layers, 22);
}

}  // namespace
}  // namespace netmend::zoo
