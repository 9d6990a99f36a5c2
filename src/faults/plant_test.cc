#include "faults/plant.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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
