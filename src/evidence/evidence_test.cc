// What a check-up leaves in its run folder: the same for any number of workers, as the schema says, one pass per split.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "checks/checkup.h"
#include "checks/programs.h"
#include "dataset/memory_dataset.h"
#include "evidence/check_run.h"
#include "evidence/points_for_test.h"
#include "evidence/schema_for_test.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::evidence {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::shared_ptr<const dataset::Dataset> some(const char* spec, int64_t count) {
  std::shared_ptr<const dataset::Dataset> whole = dataset::open(spec);
  return dataset::subset(whole, stream::spread(whole->size(), count));
}

const model::Graph& trained() {
  static const model::Graph graph = [] {
    training::Task task{"m", zoo::make("mlp:784-24-16-10", {.seed = 2}), {}, some("glyphs:train", 3000), nullptr, {}};
    task.output = task.graph.outputs[0];
    task.options.epochs = 2, task.options.rate = 0.003;
    training::Trainer trainer(std::move(task));
    while (!trainer.done()) trainer.run_epoch();
    return trainer.result();
  }();
  return graph;
}

CheckRun run(const std::string& out, int jobs, checks::CheckupRequest how = {}, bool latency = false) {
  session::Request request;
  request.out = out, request.jobs = jobs, request.quiet = true, request.budget = "quick";
  session::Session session(request, "m.onnx", trained(), some("glyphs:test", 1200), some("glyphs:train", 2500));
  CheckRun done = run_check(session, how, {.latency = latency});
  session.finish(0, 0);
  return done;
}

Json read(const std::string& path) { return Json::parse(read_file(path, 1 << 28)); }

TEST(Evidence, SameFindingsForAnyNumberOfWorkersAndOnePassPerSplit) {
  RunFolderForTest folder;
  for (int jobs : {1, 2, 7}) run(folder.path + "/" + std::to_string(jobs), jobs);
  const std::string one = read_file(folder.path + "/1/findings.json", 1 << 28);
  EXPECT_EQ(one, read_file(folder.path + "/2/findings.json", 1 << 28));
  EXPECT_EQ(one, read_file(folder.path + "/7/findings.json", 1 << 28));
  const Json record = read(folder.path + "/1/run.json");
  EXPECT_EQ(record["passes"], (Json{{"test", 1}, {"train", 1}})) << record["traversals"].dump(1);
  for (const Json& one_traversal : record["traversals"])
    EXPECT_FALSE(one_traversal["reason"].get<std::string>().empty());
}

TEST(Evidence, FollowsTheSchema) {
  const std::string path = "report/evidence.schema.json";
  ASSERT_TRUE(fs::exists(path)) << "tests run in the project's root";
  const Schema schema(read(path));
  RunFolderForTest folder;
  run(folder.path, 2, {}, true);
  const Json document = read(folder.path + "/evidence.json");
  for (const std::string& fault : schema.faults(document)) ADD_FAILURE() << fault;
  EXPECT_EQ(document["map"]["rows"].size(), document["map"]["x"].size());
  EXPECT_GT(document["latency"]["all"]["median"], 0);
  EXPECT_FALSE(document["network"]["units"][0]["zeros"].is_null());
  EXPECT_FALSE(document["network"]["units"][0]["importance"].is_null());
  // What is missing or of another kind is noticed.
  Json damaged = document;
  damaged.erase("verdict");
  damaged["findings"] = 3;
  EXPECT_GE(schema.faults(damaged).size(), 2u);
}

TEST(Evidence, OnlyAndSkipChooseRows) {
  RunFolderForTest folder;
  checks::CheckupRequest only;
  only.only = {"calibration"};
  const CheckRun one = run(folder.path + "/only", 1, only);
  EXPECT_LE(one.times.size(), 4u);
  checks::CheckupRequest skip;
  skip.skip = {"trial-repair", "robustness"};
  for (const auto& [what, seconds] : run(folder.path + "/skip", 1, skip).times)
    EXPECT_EQ(what.find("units to blame"), std::string::npos) << what;
  checks::CheckupRequest wrong;
  wrong.only = {"calibratoin"};
  EXPECT_THROW(run(folder.path + "/wrong", 1, wrong), InputError);
}

TEST(Programs, TheirFindingsAreTheirOwn) {
  const auto found = checks::parse_program_findings(
      R"({"findings": [{"kind": "too-old", "level": "minor", "title": "The model is old.", "where": "m"}]})", "age");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id(), "user:age/too-old:m");
  EXPECT_EQ(found[0].certainty, findings::Certainty::kPossible);
  for (const char* wrong :
       {"", "[]", "{}", R"({"findings": 3})", R"({"findings": [3]})", R"({"findings": [{"kind": "x"}]})",
        R"({"findings": [{"kind": "x", "level": "awful", "title": "t"}]})",
        R"({"findings": [{"kind": "x", "level": "blocker", "title": "t"}]})"})
    EXPECT_THROW(checks::parse_program_findings(wrong, "age"), InputError) << wrong;
}

TEST(Programs, RunInTheRunFolderAndJoinTheOthers) {
  RunFolderForTest folder;
  const std::string program = folder.path + "/mine";
  write_file(program,
             "#!/bin/sh\ntest -f \"$1/findings.json\" || exit 3\n"
             "echo '{\"findings\": [{\"kind\": \"k\", \"level\": \"serious\", \"title\": \"Mine.\"}]}'\n");
  fs::permissions(program, fs::perms::owner_all);
  session::Request request;
  request.out = folder.path + "/run", request.quiet = true, request.budget = "quick";
  session::Session session(request, "m.onnx", trained(), some("glyphs:test", 400));
  checks::CheckupRequest how;
  how.only = {"calibration"};
  CheckRun done = run_check(session, how, {.programs = {program}});
  session.finish(0, 0);
  ASSERT_FALSE(done.findings.empty());
  EXPECT_EQ(done.findings[0].id(), "user:mine/k");
  EXPECT_EQ(done.exit_status("serious"), 1);
  EXPECT_EQ(read(folder.path + "/run/findings.json")["findings"][0]["id"], "user:mine/k");
  session::Session again(request, "m.onnx", trained(), some("glyphs:test", 400));
  EXPECT_THROW(run_check(again, how, {.programs = {folder.path + "/no-such-program"}}), InputError);
}

}  // namespace
}  // namespace netmend::evidence
