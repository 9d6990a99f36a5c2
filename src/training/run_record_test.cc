#include "training/run_record.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "records/record.h"
#include "training/data_for_test.h"
#include "training/network_for_test.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::training {
namespace {

Task recorded_task(Options options = {.epochs = 3}) {
  model::Graph graph = zoo::make("mlp:6-8-3");
  const model::ValueId output = graph.outputs[0];
  const auto data = random_classes(100, {6}, 3);
  return {"model", std::move(graph), output, data, data, options};
}

TEST(RunRecord, ChangesNoBitOfTheTraining) {
  TestFolder folder;
  Trainer plain(recorded_task()), recorded(recorded_task());
  recorded.record_to("record.jsonl", {});
  while (!plain.done()) plain.run_epoch(), recorded.run_epoch();
  const model::Graph a = plain.result(), b = recorded.result();
  for (const auto& [id, constant] : a.constants) EXPECT_TRUE(constant.value.equal(b.constant(id)));
}

TEST(RunRecord, SaysWhatTheNetworkTheDataAndTheStepsWere) {
  TestFolder folder;
  Trainer trainer(recorded_task());
  trainer.record_to("record.jsonl", {"netmend", "train"});
  while (!trainer.done()) trainer.run_epoch();
  const records::Record record = records::read_record("record.jsonl");
  EXPECT_FALSE(record.cut);
  EXPECT_EQ(record.first("model").list("layers").size(), 2u);
  EXPECT_EQ(record.first("graph").text("last"), "linear");
  EXPECT_EQ(record.first("graph").whole("pair_count"), 0);
  EXPECT_EQ(record.first("loss").text("type"), "cross_entropy");
  EXPECT_EQ(record.first("loss").numbers("counts").size(), 3u);
  EXPECT_EQ(record.first("overlap").whole("overlapping"), 100);  // it is validated on its training data
  EXPECT_EQ(record.epochs.size(), 3u);
  EXPECT_EQ(record.series.at(0).losses.size(), 12u);
  ASSERT_GE(record.steps.size(), 4u);
  for (const auto& [name, row] : record.steps[0].layers)
    if (row.size > 0) {
      EXPECT_GT(row.gradient, 0) << name;
      EXPECT_GT(row.update, 0) << name;
    }
}

TEST(RunRecord, NamesWhereNaNCameFrom) {
  TestFolder folder;
  Task task = recorded_task({.method = Method::kSgd, .rate = 1e20, .epochs = 3});
  Trainer trainer(std::move(task));
  trainer.record_to("record.jsonl", {});
  EXPECT_THROW(while (!trainer.done()) trainer.run_epoch(), InputError);
  const records::Record record = records::read_record("record.jsonl");
  EXPECT_FALSE(record.first("nonfinite").text("what").empty());
  EXPECT_FALSE(record.first("failed").text("error").empty());
  EXPECT_EQ(record.of("ring").size(), 2u);  // before the search, and at the end
}

TEST(Clipping, BoundsWhatAStepMayChange) {
  Options options{.method = Method::kSgd, .rate = 1, .clip = 1e-4, .epochs = 1, .batch = 100};
  Trainer trainer(recorded_task(options));
  const model::Graph before = trainer.result();
  trainer.run_epoch();
  const model::Graph after = trainer.result();
  double most = 0;
  for (const auto& [id, constant] : before.constants)
    most = std::max(most, (after.constant(id) - constant.value).abs().max().item<double>());
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 1.01e-4);
}

}  // namespace
}  // namespace netmend::training
