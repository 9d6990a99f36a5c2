#include "zoo/zoo.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace netmend::zoo {
namespace {

TEST(Zoo, ParameterCountsAreThePublishedOnes) {
  const std::map<std::string, int64_t> expected = {{"lenet1", 7206},
                                                   {"lenet4", 69362},
                                                   {"lenet5", 107786},
                                                   {"dnn1", 784 * 16 + 16 + 170},
                                                   {"dnn2", 784 * 16 + 16 + 3 * 272 + 170},
                                                   {"dave2", 2116983},
                                                   {"resnet20", 272474},
                                                   {"resnet50", 25557032},
                                                   {"cifar-convnet", 945898},
                                                   {"cifar-deepimportance", 952234},
                                                   {"cnn1", 80 + 1352 * 4 + 4 + 50},
                                                   {"cnn2", 80 + 584 + 200 * 4 + 4 + 50},
                                                   {"mlp:784-64-10", 784 * 64 + 64 + 650}};
  for (const auto& [name, count] : expected) EXPECT_EQ(parameter_count(make(name)), count) << name;
}

TEST(Zoo, WeightsDependOnTheSeedAlone) {
  auto weight = [](uint64_t seed) {
    model::Graph graph = make("lenet1", {.seed = seed});
    return graph.constant(graph.find("conv2.weight"));
  };
  EXPECT_TRUE(weight(1).equal(weight(1)));
  EXPECT_FALSE(weight(1).equal(weight(2)));
}

TEST(Zoo, SchemesHaveTheirWidths) {
  auto weight = [](const std::string& scheme) {
    model::Graph graph = make("mlp:500-300", {.scheme = scheme});
    return graph.constant(graph.find("fc1.weight"));
  };
  EXPECT_NEAR(weight("glorot").abs().max().item<double>(), std::sqrt(6.0 / 800), 1e-4);
  EXPECT_NEAR(weight("glorot").mean().item<double>(), 0, 1e-3);
  EXPECT_NEAR(weight("he").std().item<double>(), std::sqrt(2.0 / 500), 1e-3);
  EXPECT_NEAR(weight("normal").std().item<double>(), 0.05, 1e-3);
  EXPECT_NEAR(weight("uniform").abs().max().item<double>(), 0.05, 1e-4);
  EXPECT_THROW(make("lenet1", {.scheme = "gloroth"}), InputError);
}

TEST(Zoo, UnknownNamesSuggestTheNearest) {
  try {
    make("lenet6");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean lenet"), std::string::npos) << error.what();
  }
}

TEST(Zoo, HostileSizesAreRefused) {
  for (const char* name : {"mlp:", "mlp:10", "mlp:10-", "mlp:-10", "mlp:10-0", "mlp:10--5", "mlp:a-b",
                           "mlp:9999999999-9", "mlp:1000000-1000000", "mlp:99999999999999999999-2", "mlp:10-2.5"})
    EXPECT_THROW(make(name), InputError) << name;
  std::string many = "mlp:1";
  for (int i = 0; i < 300; ++i) many += "-1";
  EXPECT_THROW(make(many), InputError);
  EXPECT_NO_THROW(make("mlp:3-2"));
}

}  // namespace
}  // namespace netmend::zoo
