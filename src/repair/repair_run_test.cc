#include "repair/repair_run.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "edits/edit.h"
#include "edits/edit_file.h"
#include "executor/layers.h"
#include "faults/plant.h"
#include "onnx/reader.h"
#include "repair/methods.h"
#include "session/repair_record.h"
#include "training/network_for_test.h"

namespace netmend::repair {
namespace {

using training::digits;
using training::digits_session;
using training::TestFolder;

/// A network with one damaged unit, as digits.onnx of the working folder.
model::Graph damaged(std::string* unit = nullptr) {
  model::Graph graph = digits().graph;
  faults::Fault fault = faults::plant(graph, executor::find_layers(graph), faults::find_kind("random-weights"),
                                      {.strength = 2, .layer = "fc2", .seed = 3});
  edits::apply(graph, fault.edits);
  if (unit) *unit = fault.units.at(0);
  onnx::write_model(graph, "digits.onnx");
  return onnx::read_model("digits.onnx");
}

session::Request quick(int jobs = 0) {
  session::Request request;
  request.budget = "quick", request.jobs = jobs;
  return request;
}

TEST(RepairRequests, AreCheckedBeforeTheWork) {
  RepairRequest request;
  request.method = "surgicl";
  EXPECT_THROW(check_request(request), InputError);
  request.method = "retrain", request.units = {"fc1/3"};
  EXPECT_THROW(check_request(request), InputError);
  request = {}, request.method = "sbfl-mutation", request.sbfl.measure = "gradint";
  EXPECT_THROW(check_request(request), InputError);
  request.sbfl.measure = "ochiai", request.sbfl.accuracy_offset = -1;
  EXPECT_THROW(check_request(request), InputError);
  request.sbfl.accuracy_offset = 0;
  EXPECT_NO_THROW(check_request(request));
  for (const Method& method : methods()) {
    EXPECT_NE(method_names().find(method.name), std::string::npos);
    request = {}, request.method = std::string(method.name);
    EXPECT_NO_THROW(check_request(request));
  }
}

TEST(RepairRun, RepairsADamagedUnitAndWritesWhatItDid) {
  TestFolder folder;
  std::string unit;
  session::Session session = digits_session(damaged(&unit), quick());
  RepairRequest request;
  request.method = "surgical", request.units = {unit};
  RepairRun run(session, request);
  // Duplicates stay together, so a few inputs may fit into no part.
  EXPECT_NEAR(double(run.splits().search + run.splits().selection + run.splits().holdout), 1500, 15);
  EXPECT_EQ(run.splits().failing + run.splits().passing, 1500);
  std::vector<std::string> told;
  const RepairResult& result = run.search([&](const std::string& line) { told.push_back(line); });
  EXPECT_TRUE(result.repaired) << result.reason;
  EXPECT_GT(result.fixes, result.regressions);
  EXPECT_GT(result.after.accuracy, result.before.accuracy);
  EXPECT_LT(result.p, 0.05);
  EXPECT_FALSE(told.empty());
  EXPECT_GT(session.budget().spent(), 0);

  // Only the unit that was named changes.
  for (const PlannedChange& change : run.plan()) EXPECT_EQ(change.where, unit);
  run.write_plan("edits.json"), run.write_model("fixed.onnx"), run.write_flips("flips.csv");
  model::Graph fixed = onnx::read_model("digits.onnx");
  edits::apply(fixed, edits::read_edits("edits.json").edits);
  const model::Graph written = onnx::read_model("fixed.onnx");
  for (const auto& [id, constant] : written.constants) EXPECT_TRUE(constant.value.equal(fixed.constant(id)));
  std::ifstream flips("flips.csv");
  int64_t lines = -1;
  for (std::string line; std::getline(flips, line);) ++lines;
  EXPECT_EQ(lines, result.fixes + result.regressions);
  // The model says which inputs its search saw.
  EXPECT_NE(session::seen_in_search(written, *digits().test), "");
  EXPECT_EQ(session::seen_in_search(written, *digits().train), "");
}

TEST(RepairRun, TheSameForAnyNumberOfWorkersAndAnySpeed) {
  TestFolder folder;
  const model::Graph graph = damaged();
  std::string plans[2];
  for (int jobs : {1, 2}) {
    session::Session session = digits_session(graph, quick(jobs));
    RepairRun run(session, {});
    const RepairResult& result = run.search({});
    ASSERT_GE(result.chosen, 0);
    run.write_plan("edits.json");
    plans[jobs == 2] = read_file("edits.json") + result.verdict + std::to_string(result.fixes);
  }
  EXPECT_EQ(plans[0], plans[1]);
}

TEST(RepairRun, JsonHoldsEveryMethodThatWasTried) {
  TestFolder folder;
  session::Session session = digits_session(damaged(), quick());
  RepairRequest request;
  request.method = "bias";
  RepairRun run(session, request);
  const RepairResult& result = run.search({});
  const nlohmann::ordered_json json = to_json(run.splits(), result);
  for (const char* key : {"verdict", "before", "after", "fixed", "broken", "per_class", "tried"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["tried"].size(), result.methods.size());
  EXPECT_EQ(json["net"], result.fixes - result.regressions);
  EXPECT_EQ(json["per_class"].size(), 10u);
  int64_t inputs = 0;
  for (const ClassFlips& one : result.per_class) inputs += one.inputs;
  EXPECT_EQ(inputs, run.splits().holdout);
}

TEST(RepairRun, SaysWhenThereIsNothingToRepair) {
  TestFolder folder;
  session::Session session = digits_session(damaged(), quick());
  RepairRequest request;
  request.units = {"fc1/99"};
  EXPECT_THROW(RepairRun(session, request), InputError);
  request = {}, request.on = "class=nothing";
  EXPECT_THROW(RepairRun(session, request), InputError);
  session::Request few = quick();
  few.limit = 2;
  session::Session small = digits_session(damaged(), few);
  EXPECT_THROW(RepairRun(small, {}), InputError);
}

TEST(WhatIf, JudgesEditsTogetherAndAlone) {
  TestFolder folder;
  model::Graph graph = damaged();
  faults::Fault more = faults::plant(graph, executor::find_layers(graph), faults::find_kind("zeroed"),
                                     {.count = 2, .layer = "fc1", .seed = 9});
  edits::write_edits(edits::describe(graph, more.edits, "digits.onnx", file_checksum("digits.onnx")), "edits.json");
  session::Session session = digits_session(graph);
  const WhatIfResult found = what_if(session, "edits.json");
  EXPECT_EQ(found.inputs, 1500);
  ASSERT_EQ(found.alone.size(), 2u);
  EXPECT_EQ(found.alone[0].unit, more.units[0]);
  const double change = double(found.fixes - found.regressions) / 1500;
  EXPECT_NEAR(found.after.accuracy - found.before.accuracy, change, 1e-9);
  for (const WhatIfResult::Alone& one : found.alone)
    EXPECT_NEAR(one.accuracy - found.before.accuracy, double(one.more_correct) / 1500, 1e-9);
  EXPECT_EQ(to_json(found)["alone"].size(), 2u);
  EXPECT_THROW(what_if(session, "none.json"), InputError);
}

}  // namespace
}  // namespace netmend::repair
