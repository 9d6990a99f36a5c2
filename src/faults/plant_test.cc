#include "faults/plant.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "edits/difference.h"
#include "executor/layers.h"
#include "zoo/zoo.h"

namespace netmend::faults {
namespace {

TEST(Plant, EveryKindChangesWhatItSaysAndNothingElse) {
  for (const char* network : {"lenet5", "cnn1", "resnet20"}) {
    model::Graph sound = zoo::make(network);
    std::vector<model::Layer> layers = executor::find_layers(sound);
    for (const Kind& kind : kinds()) {
      if (kind.of == Kind::kTraining) continue;
      if (kind.name == "saturated" && std::string(network) == "resnet20") continue;  // its convolutions have no bias
      for (uint64_t seed : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} {} {}", network, kind.name, seed));
        Fault fault = plant(sound, layers, kind, {.count = kind.of == Kind::kUnit ? 2 : 1, .seed = seed});
        ASSERT_FALSE(fault.edits.empty());
        std::set<std::string> named(fault.units.begin(), fault.units.end());
        for (const edits::Edit& edit : fault.edits)
          EXPECT_TRUE(kind.of == Kind::kLayer ? edit.unit.starts_with(fault.layer + "/") : named.count(edit.unit) > 0);
        EXPECT_EQ(named.size(), kind.of == Kind::kLayer ? 0u : 2u);
        model::Graph faulty = sound;
        edits::apply(faulty, fault.edits);
        edits::revert(faulty, fault.edits);
        for (const auto& [id, constant] : sound.constants) EXPECT_TRUE(at::equal(constant.value, faulty.constant(id)));
        Fault again = plant(sound, layers, kind, {.count = kind.of == Kind::kUnit ? 2 : 1, .seed = seed});
        EXPECT_EQ(fault.edits, again.edits);
      }
    }
  }
}

/// Weights and biases of the damaged unit, before and after.
std::vector<std::pair<double, double>> changes(const std::string& kind) {
  model::Graph graph = zoo::make("mlp:12-6-5-3", {.seed = 2});
  std::vector<std::pair<double, double>> values;
  for (const edits::Edit& edit : plant(graph, executor::find_layers(graph), find_kind(kind), {.seed = 4}).edits)
    for (size_t i = 0; i < edit.after.size(); ++i) values.emplace_back(edit.before[i], edit.after[i]);
  return values;
}

TEST(Plant, KindsDoWhatTheirNamesSay) {
  for (const auto& [before, after] : changes("zeroed")) EXPECT_EQ(after, 0);
  for (const auto& [before, after] : changes("sign-flipped")) EXPECT_EQ(after, -before);
  for (const auto& [before, after] : changes("scaled")) EXPECT_NEAR(after, 10 * before, 1e-5 * std::abs(before));
  const auto saturated = changes("saturated");
  ASSERT_EQ(saturated.size(), 1u);  // the bias alone
  EXPECT_GT(saturated[0].second, 0);
  double spread_before = 0, spread_after = 0;
  for (const auto& [before, after] : changes("random-weights"))
    spread_before += before * before, spread_after += after * after;
  EXPECT_GT(spread_after, 4 * spread_before);
}

TEST(Plant, NamesComeFromTheTable) {
  for (const Kind& kind : kinds()) {
    EXPECT_NE(kind_names().find(kind.name), std::string::npos);
    EXPECT_EQ(find_kind(std::string(kind.name)).name, kind.name);
  }
}

TEST(Plant, RefusesWhatIsNotThere) {
  model::Graph graph = zoo::make("lenet5");
  std::vector<model::Layer> layers = executor::find_layers(graph);
  EXPECT_THROW(find_kind("random-weihgts"), InputError);
  EXPECT_THROW(plant(graph, layers, find_kind("zeroed"), {.layer = "conv9"}), InputError);
  EXPECT_THROW(plant(graph, layers, find_kind("zeroed"), {.count = 0}), InputError);
  EXPECT_THROW(plant(graph, layers, find_kind("zeroed"), {.count = 1000}), InputError);
  EXPECT_THROW(plant(graph, {}, find_kind("zeroed"), {}), InputError);
}

}  // namespace
}  // namespace netmend::faults
