// Properties of relevance: it is conserved, it agrees with a slow twin, integrated gradients add up.
#include "explain/relevance.h"

#include <gtest/gtest.h>

#include "executor/executor.h"
#include "explain/networks_for_test.h"
#include "zoo/zoo.h"

namespace netmend::explain {
namespace {

using model::ValueId;

Options exactly(const std::string& rule = "z") {
  Options options;
  options.rules = parse_rules(rule);
  options.precision = at::kDouble;
  return options;
}

TEST(Relevance, IsConservedWithoutBiases) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    model::Graph graph = random_network(seed);
    for (const std::string rule : {"z", "alpha-beta:1", "gamma", "flat", "w2"}) {
      Explained e =
          Explainer(graph, head_of(graph), graph.inputs, exactly(rule)).run({{random_tensor({5, 2, 8, 8}, seed)}});
      at::Tensor kept = e.relevance[0].flatten(1).sum(1);
      if (rule == "z") {
        EXPECT_LT((kept - e.start).abs().max().item<double>(), 1e-9 * e.start.abs().max().item<double>())
            << seed << rule;
        EXPECT_NEAR(e.absorbed, 0, 1e-9) << seed;
      }
      EXPECT_NEAR(e.absorbed, (e.start - kept).sum().item<double>(), 1e-9 * (1 + kept.abs().sum().item<double>()));
    }
  }
}

TEST(Relevance, IsConservedInNamedNetworks) {
  struct Case {
    std::string name;
    std::vector<int64_t> shape;
  };
  for (const Case& c : {Case{"mlp:20-15-10", {3, 20}}, Case{"lenet5", {3, 1, 28, 28}},
                        Case{"cifar-convnet", {2, 3, 32, 32}}, Case{"resnet20", {2, 3, 32, 32}}}) {
    model::Graph graph = zoo::make(c.name);
    std::vector<ValueId> wanted = graph.inputs;
    for (const model::Layer& layer : executor::find_layers(graph)) wanted.push_back(layer.post);
    Explained e = Explainer(graph, head_of(graph), wanted, exactly()).run({{random_tensor(c.shape, 3).abs()}});
    at::Tensor kept = e.relevance[0].flatten(1).sum(1);
    EXPECT_LT(((kept - e.start) / e.start).abs().max().item<double>(), 1e-8) << c.name;
    EXPECT_NEAR(e.absorbed, 0, 1e-8) << c.name;
    if (c.name == "resnet20") continue;  // there relevance passes beside layers too
    for (const at::Tensor& layer : e.relevance)
      EXPECT_LT(((layer.flatten(1).sum(1) - e.start) / e.start).abs().max().item<double>(), 1e-8) << c.name;
  }
}

}  // namespace
}  // namespace netmend::explain
