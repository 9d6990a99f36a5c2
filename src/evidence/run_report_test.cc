// The files of a run: their form for every kind of task, what comes back when they are read, and errors where they are
// broken.
#include "evidence/run_report.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "evidence/check_run.h"
#include "evidence/identity.h"
#include "evidence/json.h"
#include "evidence/points_for_test.h"
#include "evidence/schema_for_test.h"
#include "report/page.h"

namespace netmend::evidence {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

CheckRun checked(PointCase& points, const RunFolderForTest& folder, bool pictures = true, bool anyway = true) {
  points.out = folder.path;
  session::Session& session = points.open();
  checks::CheckupRequest how;
  how.anyway = anyway, how.skip = {"trial-repair", "robustness"};
  CheckRun run = run_check(session, how, {.pictures = pictures});
  session.finish(0, 0);
  return run;
}

/// What is wrong with the form of a run's evidence, a line each.
std::string form_faults(const RunFolderForTest& folder) {
  static const Schema schema(nlohmann::json::parse(read_file("report/evidence.schema.json", 1 << 24)));
  std::string all;
  for (const std::string& fault : schema.faults(nlohmann::json::parse(folder.text("evidence.json"))))
    all += fault + "\n";
  return all;
}

TEST(RunFiles, HaveTheirFormForEveryKindOfTask) {
  struct Case {
    const char* name;
    std::function<void(PointCase&)> change;
  };
  for (const Case& one :
       std::vector<Case>{{"classes", [](PointCase&) {}},
                         {"no labels", [](PointCase& p) { p.y = at::Tensor(), p.classes.clear(), p.remake(); }},
                         {"numbers",
                          [](PointCase& p) {
                            p.y = p.x.select(1, 0).clone(), p.classes.clear(), p.remake();
                            p.graph = zoo::make("mlp:2-4-1", {.seed = 3});
                          }},
                         {"one class", [](PointCase& p) { p.y.zero_(), p.remake(); }},
                         {"equal inputs", [](PointCase& p) { p.x.fill_(1), p.remake(); }},
                         {"NaN inputs", [](PointCase& p) { p.x.fill_(NAN), p.remake(); }},
                         {"some NaN", [](PointCase& p) { p.x.narrow(0, 0, 20).fill_(NAN), p.remake(); }},
                         {"NaN weights",
                          [](PointCase& p) {
                            const auto layers = executor::find_layers(p.graph);
                            p.graph.replace(layers[0].weight, at::full_like(p.graph.constant(layers[0].weight), NAN));
                          }},
                         {"no hidden layer", [](PointCase& p) { p.graph = zoo::make("mlp:2-2", {.seed = 3}); }},
                         {"with training data", [](PointCase& p) { p.train = PointCase(300, 0.1, 9).data; }},
                         {"groups", [](PointCase& p) {
                            std::vector<std::vector<std::string>> groups;
                            for (int i = 0; i < 120; ++i) groups.push_back({i % 2 ? "F" : "M", i % 3 ? "\xff" : ""});
                            p.data->set_groups({"sex", "odd \"name\""}, groups);
                          }}}) {
    RunFolderForTest folder;
    PointCase points(120);
    one.change(points);
    const CheckRun run = checked(points, folder);
    EXPECT_EQ(form_faults(folder), "") << one.name;
    EXPECT_EQ(Json::parse(folder.text("findings.json"))["verdict"], run.verdict) << one.name;
    EXPECT_TRUE(fs::exists(folder.path + "/report.html") && fs::exists(folder.path + "/run.json")) << one.name;
  }
}

TEST(RunFiles, OfAModelAloneHaveTheirFormToo) {
  RunFolderForTest folder;
  session::Request request;
  request.quiet = true, request.out = folder.path;
  session::Session session(request, "model.onnx", zoo::make("mlp:4-8-3", {.seed = 2}), nullptr);
  run_check(session, {}, {});
  EXPECT_EQ(form_faults(folder), "");
  EXPECT_TRUE(Json::parse(folder.text("findings.json"))["metric"].is_null());
  EXPECT_FALSE(Json::parse(folder.text("evidence.json")).contains("inputs"));
  EXPECT_EQ(Json::parse(folder.text("evidence.json"))["run"]["data"], Json::array());
}

TEST(RunFiles, GiveTheFindingsBackThatWereWritten) {
  RunFolderForTest folder;
  PointCase points(300, 0.3);
  const CheckRun run = checked(points, folder);
  const Json document = Json::parse(folder.text("findings.json"));
  EXPECT_EQ(document, run.document);
  ASSERT_FALSE(run.findings.empty());
  ASSERT_EQ(document["findings"].size(), run.findings.size());
  for (size_t i = 0; i < run.findings.size(); ++i) {
    const findings::Finding back =
        findings::finding_from_json(JsonDocument(document["findings"][i].dump(), "findings.json").top());
    EXPECT_EQ(back.id(), run.findings[i].id());
    EXPECT_EQ(nlohmann::json(findings::to_json(back)), nlohmann::json(findings::to_json(run.findings[i])));
  }
  EXPECT_EQ(document["passed"].size(), run.passed.size());
  EXPECT_EQ(document["skipped"].size(), run.skipped.size());
  // The evaluation is that of the data.
  int64_t right = 0;
  for (int64_t i = 0; i < 300; ++i)
    right += (points.x[i][1].item<float>() > points.x[i][0].item<float>()) == (points.y[i].item<int64_t>() == 1);
  EXPECT_NEAR(document["metric"]["value"].get<double>(), double(right) / 300, 1e-9);
  EXPECT_EQ(document["result"]["samples"], 300);
}

TEST(RunFiles, TheTableOfInputsHasARowForEveryInputThatAFindingShows) {
  RunFolderForTest folder;
  PointCase points(400, 0.3);
  points.x[5][0] = 1e6, points.remake();  // an outlier, which the network may get right
  checked(points, folder);
  const Json document = Json::parse(folder.text("evidence.json"));
  const auto& samples = document["inputs"]["sample"];
  int64_t shown = 0;
  for (const Json& finding : document["findings"])
    for (const Json& input : finding["inputs"]) {
      ++shown;
      EXPECT_NE(std::find(samples.begin(), samples.end(), input["sample"]), samples.end()) << finding["id"];
      EXPECT_EQ(input["id"], std::to_string(input["sample"].get<int64_t>()));
    }
  EXPECT_GT(shown, 0);
}

TEST(RunFiles, NamesWithMarkupAndBrokenBytesStayInsideThePage) {
  RunFolderForTest folder;
  PointCase points(120);
  points.classes = {"</script><script>alert(1)</script>", "caf\xe9 <!--"};
  points.remake();
  for (int i = 0; i < 120; ++i) points.data->ids.push_back("</script>" + std::to_string(i));
  checked(points, folder);
  EXPECT_EQ(form_faults(folder), "");
  const Json document = Json::parse(folder.text("evidence.json"));
  EXPECT_EQ(document["classes"][0], points.classes[0]);
  EXPECT_EQ(document["classes"][1], "caf\xEF\xBF\xBD <!--");
  const std::string page = folder.text("report.html");
  EXPECT_EQ(page.find("<script>alert(1)"), std::string::npos);
  EXPECT_EQ(page.find("</script>0"), std::string::npos);
  EXPECT_EQ(page.find("caf\xEF\xBF\xBD <!--"), std::string::npos);
}

TEST(RunFiles, WithoutPicturesHaveNamesAlone) {
  RunFolderForTest folder;
  PointCase points(120);
  points.data->texts.assign(120, "a secret");
  checked(points, folder, false);
  EXPECT_EQ(Json::parse(folder.text("evidence.json"))["run"]["pictures"], false);
  for (const char* file : {"evidence.json", "findings.json", "report.html"})
    EXPECT_EQ(folder.text(file).find("a secret"), std::string::npos) << file;
  checked(points, folder, true);
  EXPECT_NE(folder.text("evidence.json").find("a secret"), std::string::npos) << "a second run writes them anew";
}

TEST(RunFiles, ThatAreBrokenAreNamedWithWhatToDo) {
  RunFolderForTest folder;
  PointCase points(120);
  checked(points, folder);
  const std::string whole = folder.text("evidence.json"), path = folder.path + "/evidence.json";
  auto failure = [&]() -> std::string {
    try {
      report::write_page(folder.path);
    } catch (const InputError& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return "";
  };
  EXPECT_EQ(failure(), "");
  for (const std::string& broken :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string("{\"format\": \"other/9\"}"),
        std::string(500, '[') + std::string(500, ']'), std::string("\0\0\0", 3)}) {
    write_file(path, broken);
    EXPECT_NE(failure().find("evidence.json"), std::string::npos) << broken.substr(0, 40) << ": " << failure();
    EXPECT_NE(failure().find("netmend"), std::string::npos) << failure();
  }
  fs::remove(path);
  EXPECT_NE(failure().find("evidence.json"), std::string::npos) << failure();
}

TEST(ExitStatus, FollowsTheHighestLevelAndTheBar) {
  CheckRun run;
  for (const char* bar : {"never", "note", "minor", "serious", "blocker"}) EXPECT_EQ(run.exit_status(bar), 0) << bar;
  findings::Finding note, serious;
  serious.level = findings::Level::kSerious;
  run.findings = {note, serious};
  EXPECT_EQ(run.exit_status("never"), 0);
  EXPECT_EQ(run.exit_status("note"), 1);
  EXPECT_EQ(run.exit_status("serious"), 1);
  EXPECT_EQ(run.exit_status("blocker"), 0);
  EXPECT_THROW(run.exit_status("awful"), InputError);
  run.findings = {note};
  EXPECT_EQ(run.exit_status("minor"), 0);
  run.interrupted = true;
  EXPECT_EQ(run.exit_status("never"), 130);
}

TEST(Identity, CountsLayersUnitsAndWeights) {
  PointCase points(20), other(35);
  EXPECT_EQ(identity(points.open()), "model.onnx  2 layers · 6 units · 22 weights");
  EXPECT_EQ(inputs_of(points.open(), "test"), 20);
  EXPECT_EQ(inputs_of(points.open(), "train"), 0);
  points.train = other.data;
  EXPECT_EQ(inputs_of(points.open(), "train"), 35);
  session::Request request;
  request.quiet = true;
  session::Session alone(request, "m", zoo::make("mlp:784-64-10", {.seed = 2}), nullptr);
  EXPECT_EQ(identity(alone), "m  2 layers · 74 units · 50,890 weights");
  EXPECT_EQ(inputs_of(alone, "test"), 0);
}

TEST(ResultJson, LeavesOutWhatWasNotJudgedAndWhatIsNoNumber) {
  observers::PredictionSettings settings;
  settings.task = observers::Task::kNone;
  observers::PredictionResult result;
  result.samples = 3, result.loss = NAN, result.accuracy = 0.5;
  const Json none = result_json(settings, result);
  EXPECT_TRUE(none["accuracy"].is_null() && none["loss"].is_null() && none["metric"].is_null()) << none.dump();
  EXPECT_FALSE(none.contains("mae"));
  settings.task = observers::Task::kNumber, settings.metric = "mae", result.mae = 2, result.loss = 4;
  const Json number = result_json(settings, result);
  EXPECT_TRUE(number["accuracy"].is_null());
  EXPECT_EQ(number["mae"], 2.0);
  EXPECT_EQ(number["loss"], 4.0);
  settings.task = observers::Task::kClasses, settings.classes = {"a"}, settings.metric = "accuracy";
  result.per_class.resize(1);
  result.per_class[0].name = "a";
  const Json classes = result_json(settings, result);
  EXPECT_EQ(classes["accuracy"], 0.5);
  EXPECT_TRUE(classes["per_class"][0]["low"].is_null()) << "no input: no interval";
}

}  // namespace
}  // namespace netmend::evidence
