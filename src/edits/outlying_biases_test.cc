#include "edits/outlying_biases.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "executor/layers.h"
#include "zoo/zoo.h"

namespace netmend::edits {
namespace {

/// A layer of 64 units whose biases scatter as training leaves them.
struct Trained {
  model::Graph graph = zoo::make("mlp:20-64-64-5", {.seed = 3});
  std::vector<model::Layer> layers = executor::find_layers(graph);
  at::Tensor biases;

  explicit Trained(uint64_t seed) {
    at::manual_seed(seed);
    biases = 0.1 * at::randn({64});
    put(biases);
  }
  void put(const at::Tensor& values) { graph.replace(layers[1].bias, values.clone()); }
  std::vector<OutlyingBias> find() const { return find_outlying_biases(graph, layers[1]); }
};

TEST(OutlyingBiases, AreNoneInLayersAsTrainingLeavesThem) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Trained one(seed);
    EXPECT_TRUE(one.find().empty()) << seed;
    one.put(at::exp(3 * one.biases));  // a long tail
    EXPECT_TRUE(one.find().empty()) << seed;
    one.put(at::zeros({64}));
    EXPECT_TRUE(one.find().empty()) << seed;
  }
}

TEST(OutlyingBiases, AreFoundAndPutBackToTheMedianOfTheOthers) {
  Trained one(7);
  one.biases[12] = 11;
  one.put(one.biases);
  const auto found = one.find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].unit, 12);
  EXPECT_DOUBLE_EQ(found[0].bias, 11);
  EXPECT_LT(found[0].high, 0.5);
  model::Graph mended = one.graph;
  edits::apply(mended, found[0].reset);
  EXPECT_LT(std::abs(mended.constant(one.layers[1].bias)[12].item<double>()), 0.1);
  EXPECT_TRUE(find_outlying_biases(mended, one.layers[1]).empty());
}

TEST(OutlyingBiases, AreFoundWhereMostOfALayerHasThem) {
  Trained one(8);
  one.biases.narrow(0, 0, 40).fill_(-1e4);
  one.put(one.biases);
  const auto found = one.find();
  ASSERT_EQ(found.size(), 40u);
  for (const OutlyingBias& each : found) {
    EXPECT_LT(each.unit, 40);
    EXPECT_GT(each.low, -1);
  }
}

}  // namespace
}  // namespace netmend::edits
