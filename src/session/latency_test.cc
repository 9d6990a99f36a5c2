#include "session/latency.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "dataset/memory_dataset.h"
#include "session/split.h"
#include "zoo/zoo.h"

namespace netmend::session {
namespace {

Session timed_session(int64_t inputs, at::Tensor labels, std::vector<std::string> classes,
                      const std::string& network = "mlp:4-3-2") {
  Request request;
  request.quiet = true;
  return {request, "m.onnx", zoo::make(network, {.seed = 1}),
          std::make_shared<dataset::MemoryDataset>(dataset::table_feature({"a", "b", "c", "d"}), at::randn({inputs, 4}),
                                                   std::move(labels), std::move(classes))};
}

void expect_in_order(const nlohmann::ordered_json& five) {
  double before = 0;
  for (const char* key : {"min", "q1", "median", "q3", "max"}) {
    EXPECT_GE(five[key].get<double>(), before) << five.dump();
    before = five[key].get<double>();
  }
}

TEST(Latency, FiguresAreInOrderAndClassesAddUp) {
  Session session = timed_session(600, (at::arange(600) % 3 == 0).to(at::kLong), {"no", "yes: ü"});
  const Latency latency = measure_latency(session);
  EXPECT_EQ(latency.inputs, 256);
  EXPECT_EQ(latency.figures["unit"], "ms");
  EXPECT_EQ(latency.figures["batch"], 1);
  expect_in_order(latency.figures["all"]);
  EXPECT_EQ(latency.figures["all"]["count"], 256);
  int64_t count = 0;
  std::set<std::string> names;
  for (const auto& group : latency.figures["groups"]) {
    expect_in_order(group);
    count += group["count"].get<int64_t>();
    names.insert(group["name"].get<std::string>());
  }
  EXPECT_EQ(count, 256);
  EXPECT_EQ(names, (std::set<std::string>{"no", "yes: ü"}));
  EXPECT_LE(latency.median.low, latency.median.value);
  EXPECT_LE(latency.median.value, latency.median.high);
  EXPECT_GE(latency.median.low, latency.figures["all"]["min"].get<double>());
  EXPECT_LE(latency.median.high, latency.figures["all"]["max"].get<double>());
  ASSERT_EQ(session.traversals().size(), 1u);
  EXPECT_EQ(session.traversals()[0].inputs, 256);
  EXPECT_FALSE(session.traversals()[0].whole);
}

TEST(Latency, OfNumbersAndOfFewInputs) {
  Session numbers = timed_session(3, at::rand({3}), {}, "mlp:4-3-1");
  const Latency latency = measure_latency(numbers);
  EXPECT_EQ(latency.inputs, 3);
  EXPECT_TRUE(latency.figures["groups"].empty());
  EXPECT_EQ(latency.figures["all"]["count"], 3);
  Session single = timed_session(1, at::zeros({1}, at::kLong), {"a", "b"});
  const Latency one = measure_latency(single);
  EXPECT_EQ(one.inputs, 1);
  EXPECT_EQ(one.median.low, one.median.high);
  EXPECT_EQ(one.figures["all"]["min"], one.figures["all"]["max"]);
}

}  // namespace
}  // namespace netmend::session
