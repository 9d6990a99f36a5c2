// The studies' own parts: planting, trained networks, small studies from end to end, models on tensors from files.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "edits/model_files.h"
#include "faults/kinds.h"
#include "session/split.h"
#include "studies/conformance.h"
#include "studies/demo_data.h"
#include "studies/plant_run.h"
#include "studies/run_model.h"
#include "studies/side_effects.h"
#include "studies/study_runs.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"
#include "training/network_for_test.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;
using training::digits;
using training::digits_session;
using training::TestFolder;

TEST(Plant, TheTruthNamesWhatDiffers) {
  TestFolder folder;
  session::Request how;
  how.model = "digits.onnx", how.seed = 4;
  session::Session session(how);  // without data
  PlantRequest request;
  request.kind = "zeroed", request.count = 2, request.product = "faulty.onnx", request.truth = "truth.json";
  const PlantedFault fault = plant(session, request);
  EXPECT_FALSE(fault.judged);
  ASSERT_EQ(fault.units.size(), 2u);
  const edits::Difference found = edits::compare_files("digits.onnx", "faulty.onnx");
  ASSERT_EQ(found.units.size(), 2u);
  for (const edits::UnitChange& unit : found.units)
    EXPECT_NE(std::find(fault.units.begin(), fault.units.end(), unit.name), fault.units.end());
  const Json truth = Json::parse(read_file("truth.json"));
  EXPECT_EQ(truth["kind"], "zeroed");
  EXPECT_EQ(truth["edits"].size(), size_t(fault.edits));
}

TEST(Plant, DrawsUntilItCostsEnough) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  PlantRequest request;
  request.kind = "random-weights", request.product = "faulty.onnx", request.at_least = 3, request.at_most = 40;
  const PlantedFault fault = plant(session, request);
  EXPECT_TRUE(fault.judged);
  EXPECT_GE(fault.points(), 3);
  EXPECT_LE(fault.points(), 40);
  request.at_least = 99.5, request.kind = "saturated";
  EXPECT_THROW(plant(session, request), InputError);
  request.kind = "nothing";
  EXPECT_THROW(plant(session, request), InputError);
}

TEST(Plant, PoisonedLabelsNameTheClasses) {
  TestFolder folder;
  session::Request how;
  how.limit = 400;
  session::Session session = digits_session(digits().graph, how);
  PlantRequest request;
  request.kind = "poisoned-labels", request.product = "faulty.onnx";
  const PlantedFault fault = plant(session, request);
  EXPECT_NE(fault.classes.find(':'), std::string::npos);
  EXPECT_GT(fault.edits, 0);
  session::Request alone;
  alone.model = "digits.onnx";
  session::Session no_data(alone);
  EXPECT_THROW(plant(no_data, request), InputError);
}

TEST(TrainedNetworks, AreTrainedOnceAndNamedAfterTheirData) {
  TestFolder folder;
  train_named("mlp:784-8-10", "glyphs", "small.onnx", {.seed = 1, .epochs = 1, .limit = 500}, 0);
  ASSERT_TRUE(std::filesystem::exists("small.onnx"));
  StudyContext context;
  context.folder = ".";
  const NetworkFile file = trained_file(context, "small.onnx@glyphs");
  EXPECT_EQ(file.file, "small.onnx");
  session::Session session = open_session(context, file, 200);
  EXPECT_EQ(session.test().used(), 200);
  EXPECT_NE(session.train(), nullptr);
  EXPECT_THROW(trained_file(context, "lenet5"), InputError);
  EXPECT_THROW(train_named("mlp:784-8-10", "glyphs:test", "x.onnx", {}, 0), InputError);
}

TEST(PlantedStudy, RanksRepairsAndGoesOnWhereItStopped) {
  TestFolder folder;
  StudyContext context;
  context.folder = "study";
  std::vector<std::string> told;
  context.progress = [&](const std::string& line) { told.push_back(line); };
  PlantedRequest request;
  request.models = {"digits.onnx@glyphs"}, request.kinds = {"random-weights"}, request.repairs = {"bias"};
  request.runs = 1;
  Json first = run_planted_study(context, request);
  EXPECT_EQ(first["faults"], 1);
  EXPECT_FALSE(told.empty());
  for (const Json& row : first["measures"]) {
    EXPECT_GE(row["median_rank"].get<int64_t>(), 1);
    EXPECT_LE(row["top1_by_chance"].get<double>(), row["top5_by_chance"].get<double>());
  }
  EXPECT_EQ(first["repairs"][0]["method"], "bias");
  told.clear();
  EXPECT_EQ(run_planted_study(context, request), first);
  EXPECT_TRUE(told.empty());
  request.kinds = {"random-wights"};
  EXPECT_THROW(run_planted_study(context, request), InputError);
  request = {}, request.repairs = {"pray"};
  EXPECT_THROW(run_planted_study(context, request), InputError);
}

TEST(PlantedStudy, SlicesPutTogetherAreTheWhole) {
  TestFolder folder;
  StudyContext context;
  PlantedRequest request;
  request.models = {"digits.onnx@glyphs"}, request.kinds = {"random-weights", "zeroed"}, request.repairs = {};
  request.runs = 1;
  for (const char* part : {"1/2", "2/2"}) {
    context.folder = std::string("part") + part[0];
    request.slice = part;
    EXPECT_EQ(run_planted_study(context, request)["faults"], 1);
  }
  std::vector<std::string> told;
  context.folder = "together", context.progress = [&](const std::string& line) { told.push_back(line); };
  request.slice = "", request.add = {"part1", "part2"};
  Json together = run_planted_study(context, request);
  EXPECT_TRUE(told.empty());  // nothing was left to run
  context.folder = "alone", request.add = {};
  Json alone = run_planted_study(context, request);
  for (const char* tables : {"faults", "measures", "repairs"})  // seconds differ
    EXPECT_EQ(together[tables], alone[tables]);
  request.slice = "3/2";
  EXPECT_THROW(run_planted_study(context, request), InputError);
}

TEST(PlantedStudy, KindsThatDamageNoSingleUnitAndWhatRepairsDoBesides) {
  TestFolder folder;
  StudyContext context;
  context.folder = "study";
  PlantedRequest request;
  request.models = {"digits.onnx@glyphs"}, request.kinds = {"layer-noise", "swapped-classes", "poisoned-labels"};
  request.repairs = {"bias"}, request.targeted = {"surgical", "retrain"}, request.runs = 1;
  const Json json = run_planted_study(context, request);
  EXPECT_EQ(json["faults"], 3);
  for (const Json& row : json["measures"])  // only of the layer is there a unit to rank
    if (row["group"] == "all") {
      EXPECT_EQ(row["faults"], 1) << row;
    }
  bool kept = false;
  for (const Json& row : json["repairs"]) {
    EXPECT_LE(row["won_back_low"], row["won_back"]) << row;
    if (row["group"] != "all") continue;
    EXPECT_EQ(row["faults"], 3);
    EXPECT_TRUE(row["target_fixed"].is_number()) << row;  // failures of the confusion are on the hold-out part
    if (row["repaired"] == 0.0) continue;
    kept = true;
    EXPECT_TRUE(row["worst_class"].is_number()) << row;
    EXPECT_TRUE(row["worst_group"].is_null()) << row;  // the glyphs have no groups
    for (const char* side : {"sound", "faulty", "repaired"})
      for (const char* how : {"mild", "pgd"}) {
        EXPECT_GE(row[how][side], 0.0) << row;
        EXPECT_LE(row[how][side], 1.0) << row;
      }
  }
  EXPECT_TRUE(kept);
  for (const Json& row : json["targeted"]) {
    EXPECT_GE(row["target_right"], row["target_fixed"]) << row;
    EXPECT_EQ(row["faults"], row["group"] == "all" || row["group"] == "network digits.onnx@glyphs" ? 3 : 1) << row;
    EXPECT_GT(row["work"], 0.0) << row;
    if (row["faults"] == 1) {
      EXPECT_TRUE(row["target_fixed_low"].is_null()) << row;
    }
  }
  EXPECT_EQ(json["targeted_pairs"][0]["faults"], 3);
  const std::string text = read_file("study/planted-faults.md");
  EXPECT_NE(text.find("Table 3"), std::string::npos);
}

/// What every study leaves for other programs, and the first of its tables by itself.
void expect_products(const std::string& folder, const Json& json) {
  const std::string rows = read_file(folder + "/trials.csv");
  EXPECT_TRUE(rows.starts_with("trial,field,value\n"));
  EXPECT_GT(std::count(rows.begin(), rows.end(), '\n'), 3);
  const std::string table = table_of(json["text"].get<std::string>(), 1);
  EXPECT_TRUE(table.starts_with("|")) << table;
  EXPECT_NE(latex_of(table).find("\\begin{tabular}"), std::string::npos);
}

TEST(TrainingMutants, ScoresFollowFromTheTrialsAndGoOn) {
  TestFolder folder;
  StudyContext context{"study", 3, 0, "cpu", {}};
  TrainingMutantsRequest request;
  request.model = "lenet1@glyphs", request.operators = {"TRD", "ACH", "WAB"};
  request.runs = 3, request.epochs = 1, request.limit = 400, request.tests = 200;
  const Json json = run_training_mutants_study(context, request);
  expect_products("study", json);
  ASSERT_EQ(json["operators"].size(), 3u);
  for (const Json& row : json["operators"]) {
    SCOPED_TRACE(row.dump());
    EXPECT_FALSE(row.contains("why_not"));
    std::set<std::string> values;  // each is trained once, whoever asks for it
    for (const Json& one : row["tried"]) EXPECT_TRUE(values.insert(one["value"].get<std::string>()).second);
    if (!row.contains("score")) continue;
    EXPECT_TRUE(row["killable"].get<bool>());
    EXPECT_GT(row["killability"].get<double>(), 0);
  }
  const Json again = run_training_mutants_study(context, request);
  EXPECT_EQ(json["text"], again["text"]);
  context.seed = 4;  // other trials, beside those of the first seed
  const Json other = run_training_mutants_study(context, request);
  EXPECT_NE(json["operators"], other["operators"]);
}

TEST(TrainingMutants, TheTestsMayBeSomeonesOwn) {
  TestFolder folder;
  const StudyContext context{"study", 3, 0, "cpu", {}};
  TrainingMutantsRequest request;
  request.model = "lenet1@glyphs", request.data = "glyphs:train", request.operators = {"HNE"};
  request.runs = 2, request.epochs = 1, request.limit = 300, request.tests = 100;
  EXPECT_NE(run_training_mutants_study(context, request)["text"].get<std::string>().find("glyphs:train"),
            std::string::npos);
}

TEST(SlowMutationScores, AnswerWhichFigurePredictsFaultsFound) {
  TestFolder folder;
  const StudyContext context{"study", 3, 0, "cpu", {}};
  ScoresRequest request;
  request.models = {"lenet1@glyphs"}, request.mutants = 40, request.faults = 10, request.tests = 300;
  const Json json = run_scores_study(context, request);
  expect_products("study", json);
  EXPECT_GE(json["networks"][0]["sets"].size(), 9u);
  const Json& best = json["mean_correlations"][json["mean_correlations"]["best"].get<std::string>()];
  for (const auto& [name, one] : json["mean_correlations"].items())
    if (one.is_object() && one["value"].is_number()) {
      EXPECT_LE(one["value"].get<double>(), best["value"].get<double>()) << name;
      EXPECT_LE(one["low"].get<double>(), one["high"].get<double>()) << name;
    }
  ASSERT_EQ(json["sensitivity"].size(), 1u);
  EXPECT_NE(json["text"].get<std::string>().find("inhibitors are more sensitive"), std::string::npos);
}

TEST(SideEffects, TheWorstClassAndGroupAreThoseThatFellMost) {
  auto rows = [](std::vector<int> labels, std::vector<int> right) {
    std::vector<observers::SampleRow> out(labels.size());
    for (size_t i = 0; i < labels.size(); ++i)
      out[i].sample = int64_t(i), out[i].label = labels[i],
      out[i].right = right[i] ? observers::SampleRow::kRight : observers::SampleRow::kWrong;
    return out;
  };
  std::vector<int> labels, before, after;
  for (int i = 0; i < 100; ++i) {
    labels.push_back(i % 2);
    before.push_back(1);
    after.push_back(i % 2 || i % 10);  // of class 0 every fifth falls
  }
  WorstChange worst = worst_class({"a", "b"}, rows(labels, before), rows(labels, after));
  EXPECT_EQ(worst.name, "a");
  EXPECT_DOUBLE_EQ(worst.change, -0.2);
  EXPECT_EQ(worst.inputs, 50);
  EXPECT_EQ(worst_class({"a", "b"}, rows({0, 1}, {1, 1}), rows({0, 1}, {0, 1})).inputs, 0);  // too few
}

TEST(Studies, NamesAreCheckedBeforeTheWork) {
  TestFolder folder;
  StudyContext context;
  context.folder = "study";
  DeepImportanceRequest paper;
  paper.models = {"lenet6"};
  EXPECT_THROW(run_deepimportance_study(context, paper), InputError);
  QualityRequest quality;
  quality.kinds = {"wrong-lables"};
  EXPECT_THROW(run_quality_study(context, quality), InputError);
  quality.kinds.clear(), quality.budget = "soon";
  EXPECT_THROW(run_quality_study(context, quality), InputError);
  EXPECT_FALSE(std::filesystem::exists("study/trials.db"));
  EXPECT_NE(quality_kind_names().find("wrong-labels"), std::string::npos);
  EXPECT_NE(deepimportance_models().find("lenet1"), std::string::npos);
}

TEST(SlowQualityStudy, IsQuietOnASoundNetworkAndLoudOnAFault) {
  TestFolder folder;
  StudyContext context;
  context.folder = "study";
  QualityRequest request;
  request.models = {}, request.faulty = {"digits.onnx@glyphs"}, request.kinds = {"saturated"};
  const Json found = run_quality_study(context, request);
  int64_t loud = 0;
  for (const Json& row : found["rows"])
    if (row["part"] == "loud") {
      ++loud;
      EXPECT_TRUE(row["good"].get<bool>()) << row.dump();
    }
  EXPECT_EQ(loud, 1);
  EXPECT_NE(found["text"].get<std::string>().find("saturated"), std::string::npos);
}

void write_npy(const std::string& path, const at::Tensor& values) {
  std::string bytes = npy_header("<f4", values.sizes());
  write_file(path, bytes.append(static_cast<const char*>(values.data_ptr()), size_t(values.numel()) * 4));
}

TEST(RunModel, WritesWhatTheNetworkGives) {
  TestFolder folder;
  write_npy("x.npy", at::zeros({3, 784}));
  const auto written = run_model({"digits.onnx", "out", {"x.npy"}, {}, false, "cpu"});
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].shape, (std::vector<int64_t>{3, 10}));
  EXPECT_EQ(read_file(written[0].file).substr(1, 5), "NUMPY");
  EXPECT_THROW(run_model({"digits.onnx", "out", {"y=x.npy"}, {}, false, "cpu"}), InputError);
  EXPECT_THROW(run_model({"digits.onnx", "out", {}, {}, false, "cpu"}), InputError);
  EXPECT_THROW(run_model({"digits.onnx", "out", {"x.npy"}, {"logitz"}, false, "cpu"}), InputError);
}

TEST(Conformance, ACaseWithoutDataFails) {
  TestFolder folder;
  std::filesystem::create_directories("cases/digits");
  std::filesystem::copy_file("digits.onnx", "cases/digits/model.onnx");
  const auto cases = find_conformance_cases("cases", "dig");
  ASSERT_EQ(cases.size(), 1u);
  const ConformanceCase found = run_conformance_case(cases[0]);
  EXPECT_EQ(found.name, "digits");
  EXPECT_EQ(found.status, "failed");
  EXPECT_EQ(found.reason, "no test_data_set_0");
  EXPECT_THROW(find_conformance_cases("cases", "nothing"), InputError);
  write_file("cases/digits/model.onnx", "broken");
  EXPECT_EQ(run_conformance_case(cases[0]).status, "failed");
}

TEST(DemoData, SpoiledTestsAreNegativesWithWrongSevens) {
  TestFolder folder;
  const SpoiledTests spoiled = write_spoiled_tests("tests.npz", 42);
  EXPECT_GT(spoiled.mislabelled, 50);
  auto changed = dataset::open("npz:tests.npz,x=x,y=y,scale=1"), raw = dataset::open("glyphs:test,scale=1");
  ASSERT_EQ(changed->size(), raw->size());
  const std::vector<int64_t> few = stream::spread(raw->size(), 500);
  const dataset::Batch a = changed->read(few), b = raw->read(few);
  EXPECT_TRUE((a.inputs[0].reshape({500, -1}) + b.inputs[0].reshape({500, -1})).eq(255).all().item<bool>());
  at::Tensor differ = a.labels != b.labels;
  EXPECT_TRUE(b.labels.masked_select(differ).eq(7).all().item<bool>());
  EXPECT_TRUE(a.labels.masked_select(differ).eq(1).all().item<bool>());
  const DemoSizes sizes = write_demo_sheet("sheet.png");
  EXPECT_EQ(sizes.test, raw->size());
  EXPECT_GT(demo_accuracy("digits.onnx", 0), 0.5);
}

}  // namespace
}  // namespace netmend::studies
