#include "adequacy/coverage_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "adequacy/choice.h"
#include "base/error.h"
#include "training/network_for_test.h"

namespace netmend::adequacy {
namespace {

using Json = nlohmann::ordered_json;
using training::digits;
using training::digits_session;
using training::TestFolder;

Json without_times(Json json) {
  for (const char* key : {"seconds", "scoring_seconds", "learning_seconds"}) json.erase(key);
  return json;
}

TEST(CoverageRequests, AreCheckedBeforeTheWork) {
  CoverageRequest request;
  for (const CriterionRow& row : criteria()) EXPECT_NE(criteria_names().find(row.name), std::string::npos);
  EXPECT_NO_THROW(check_request(request));
  request.criteria = "KMNCC";
  EXPECT_THROW(check_request(request), InputError);
  request = {}, request.important = "6,none";
  EXPECT_THROW(check_request(request), InputError);
  request = {}, request.published = "nobody";
  EXPECT_THROW(check_request(request), InputError);
}

TEST(CoverageRun, ReadsTrainingAndTestsOnceAndJudgesEveryCriterion) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph, {}, true);
  CoverageRequest request;
  request.important = "4";
  CoverageRun run(session, request);
  const Json found = run.document();
  EXPECT_EQ(run.inputs(), 1500);
  EXPECT_EQ(found["units"], 40);
  EXPECT_EQ(found["train_inputs"], 3000);
  EXPECT_TRUE(found["learned"].get<bool>());
  std::set<std::string> names;
  for (const Json& one : found["criteria"]) {
    names.insert(one["name"]);
    if (!one["total"].is_null()) {
      EXPECT_LE(one["covered"].get<double>(), one["total"].get<double>()) << one["name"];
      EXPECT_GE(one["value"].get<double>(), 0);
    }
  }
  for (const Wanted& wanted : parse_criteria("all")) EXPECT_TRUE(names.count(wanted.name)) << wanted.name;
  EXPECT_EQ(found["important"][0]["m"], 4);
  int64_t whole = 0;
  for (const session::Traversal& one : session.traversals()) whole += one.split == "test" && one.whole;
  EXPECT_EQ(whole, 1);
}

TEST(CoverageRun, AProfileInAFileSaysWhatLearningSays) {
  TestFolder folder;
  CoverageRequest request;
  request.criteria = "KMNC,NBC,DSC", request.profile = "digits.profile";
  session::Session first = digits_session(digits().graph, {}, true);
  const Json learned = CoverageRun(first, request).document();
  ASSERT_TRUE(std::filesystem::exists("digits.profile"));
  session::Session second = digits_session(digits().graph);  // without training data
  const Json read = CoverageRun(second, request).document();
  EXPECT_FALSE(read["learned"].get<bool>());
  EXPECT_EQ(learned["criteria"], read["criteria"]);
}

TEST(CoverageRun, WithoutTrainingDataCriteriaThatNeedItAreSkipped) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  const Json found = CoverageRun(session, {}).document();
  std::set<std::string> skipped;
  for (const Json& one : found["skipped"]) skipped.insert(one["what"]);
  for (const CriterionRow& row : criteria())
    EXPECT_EQ(skipped.count(std::string(row.name)) > 0, row.needs.training) << row.name;
  EXPECT_TRUE(found["train"].is_null());
}

TEST(CoverageRun, WorkersChangeNothing) {
  TestFolder folder;
  Json found[2];
  for (int jobs : {1, 3}) {
    session::Request how;
    how.jobs = jobs;
    session::Session session = digits_session(digits().graph, how, true);
    found[jobs == 3] = without_times(CoverageRun(session, {}).document());
    found[jobs == 3].erase("memory");  // each worker keeps states of its own
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST(CoverageRun, PartsPutTogetherAreOnePassBitForBit) {
  TestFolder folder;
  CoverageRequest request;
  request.profile = "digits.profile";
  session::Session learning = digits_session(digits().graph, {}, true);
  CoverageRun(learning, request);
  session::Session alone = digits_session(digits().graph);
  const Json whole = without_times(CoverageRun(alone, request).document());
  int64_t inputs = 0;
  for (int i = 1; i <= 4; ++i) {
    session::Session session = digits_session(digits().graph);
    const std::string file = "part" + std::to_string(i);
    inputs += cover_shard(session, request, std::to_string(i) + "/4", file).samples;
    request.parts.push_back(file);
  }
  EXPECT_EQ(inputs, 1500);
  session::Session merging = digits_session(digits().graph);
  EXPECT_EQ(without_times(CoverageRun(merging, request).document()), whole);

  auto refused = [&](std::vector<std::string> parts, const std::string& criteria) {
    CoverageRequest other = request;
    other.parts = std::move(parts), other.criteria = criteria;
    session::Session session = digits_session(digits().graph);
    EXPECT_THROW(CoverageRun(session, other), InputError) << criteria;
  };
  refused({"part1", "part3", "part4"}, "all");           // one is missing
  refused({"part1", "part2", "part3", "part3"}, "all");  // one is there twice
  refused(request.parts, "NC");                          // other criteria
  std::ofstream("damaged") << "netmend";
  refused({"damaged"}, "all");
  request.parts.clear(), request.profile = "none.profile";
  session::Session unlearned = digits_session(digits().graph, {}, true);
  EXPECT_THROW(cover_shard(unlearned, request, "1/4", "part"), InputError);
  EXPECT_THROW(cover_shard(alone, request, "5/4", "part"), InputError);
}

TEST(CoverageRun, TablesAndTheListOfTestsWorthKeeping) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  CoverageRequest request;
  request.criteria = "NC,TKNC";
  CoverageRun run(session, request);
  run.write_subset("keep.txt");
  run.write_tables(".");
  const Json found = run.document();
  EXPECT_EQ(found["subset"]["file"], "keep.txt");
  std::ifstream keep("keep.txt"), units("units.csv");
  int64_t lines = 0, last = -1;
  for (std::string line; std::getline(keep, line); ++lines) {
    EXPECT_GT(std::stoll(line), last);
    last = std::stoll(line);
  }
  EXPECT_EQ(lines, found["subset"]["inputs"].get<int64_t>());
  int64_t rows = -1;
  for (std::string line; std::getline(units, line);) ++rows;
  EXPECT_EQ(rows, 40);
  // The tests that are kept cover what all of them do.
  session::Request fewer;
  session::Session kept(fewer, "digits.onnx", digits().graph, [&] {
    std::vector<int64_t> numbers;
    std::ifstream again("keep.txt");
    for (std::string line; std::getline(again, line);) numbers.push_back(std::stoll(line));
    return dataset::subset(digits().test, numbers);
  }());
  const Json small = CoverageRun(kept, request).document();
  for (size_t i = 0; i < found["criteria"].size(); ++i)
    EXPECT_EQ(small["criteria"][i]["covered"], found["criteria"][i]["covered"]);
}

TEST(CoverageRun, OneLayerAndTheNextCommand) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph, {}, true);
  CoverageRequest request;
  request.criteria = "IDC,NC:0.5", request.important = "3", request.layers = {"fc1"};
  const Json found = CoverageRun(session, request).document();
  EXPECT_EQ(found["units"], 24);
  EXPECT_EQ(found["layer"], "fc1");
  EXPECT_NE(found["next"][0].get<std::string>().find("--profile digits.profile"), std::string::npos);
  for (const Json& unit : found["important"][0]["units"])
    EXPECT_EQ(unit["unit"].get<std::string>().substr(0, 4), "fc1/");
  EXPECT_TRUE(found["surprise"].empty());
}

TEST(CoverageRun, OnlySomeTests) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  CoverageRequest request;
  request.criteria = "NC", request.on = "class=3";
  CoverageRun run(session, request);
  EXPECT_LT(run.inputs(), 300);
  EXPECT_GT(run.inputs(), 50);
  request.on = "class=none";
  EXPECT_THROW(CoverageRun(session, request), InputError);
  request = {}, request.layers = {"fc9"};
  EXPECT_THROW(CoverageRun(session, request), InputError);
}

}  // namespace
}  // namespace netmend::adequacy
