#include "session/session.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "dataset/memory_dataset.h"
#include "model/layer.h"
#include "observers/predictions.h"
#include "onnx/writer.h"
#include "session/folder_for_test.h"
#include "session/split.h"
#include "zoo/zoo.h"

namespace netmend::session {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const dataset::Dataset> some_data(int64_t count = 600, int64_t classes = 3) {
  at::manual_seed(1);
  return std::make_shared<dataset::MemoryDataset>(dataset::table_feature({"a", "b", "c", "d"}), at::randn({count, 4}),
                                                  at::randint(classes, {count}, at::kLong),
                                                  std::vector<std::string>{"cat", "dog", "owl"}, "memory:test");
}

Session make(Request request = {}, int64_t inputs = 600) {
  request.quiet = true;
  return Session(std::move(request), "m.onnx", zoo::make("mlp:4-8-5-3", {.seed = 1}), some_data(inputs));
}

TEST(Session, OpensModelDataAndTaskOnce) {
  Session session = make();
  EXPECT_EQ(session.task().task, observers::Task::kClasses);
  EXPECT_EQ(session.task().classes, (std::vector<std::string>{"cat", "dog", "owl"}));
  EXPECT_EQ(&session.test(), &session.test());
  EXPECT_EQ(session.train(), nullptr);
  EXPECT_EQ(session.layers().size(), 3u);
  EXPECT_GT(session.test().subject.cost, 4 * 8 + 8 * 5 + 5 * 3);  // at least its multiplications
}

TEST(Session, OneParserOfUnits) {
  Session session = make();
  const std::string first = session.layers()[0].name;
  EXPECT_EQ(session.unit(first + "/7").unit, 7);
  EXPECT_EQ(session.unit(session.layers()[1].name + "/0").layer, 1u);
  for (const std::string& wrong : {first + "/8", first + "/-1", first + "/x", first, std::string("nowhere/1")})
    EXPECT_THROW(session.unit(wrong), InputError) << wrong;
  try {
    session.unit(first + "x/1");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean " + first), std::string::npos) << error.what();
  }
}

TEST(Session, EveryUnitIsFoundByItsNameWhateverNodesAreCalled) {
  for (const std::string name : {"block/conv:1", "a b", "ü", "", "/", "7"}) {
    model::Graph graph = zoo::make("mlp:4-8-5-3", {.seed = 1});
    graph.nodes.at(0).name = name;
    Request request;
    request.quiet = true;
    Session session(request, "m.onnx", std::move(graph), some_data());
    for (size_t l = 0; l < session.layers().size(); ++l)
      for (int64_t u = 0; u < session.layers()[l].units; ++u) {
        const UnitPlace place = session.unit(model::unit_name(session.layers()[l], u));
        EXPECT_EQ(place.layer, l) << session.layers()[l].name;
        EXPECT_EQ(place.unit, u);
      }
  }
}

TEST(Session, CommandsAreQuoted) {
  Request request;
  request.model = "my model.onnx", request.data = "csv:$(touch x).csv,label=y";
  Session session = make(request);
  EXPECT_EQ(session.command("failures", {"--on", "class=a b"}),
            "netmend failures 'my model.onnx' --data 'csv:$(touch x).csv,label=y' --on 'class=a b'");
  EXPECT_EQ(make().command("check"), "netmend check");
}

TEST(Session, SamplesByWorkAndTellsIt) {
  std::vector<std::string> told;
  Request request;
  request.budget = "quick";
  request.note = [&](const std::string& line) { told.push_back(line); };
  Session session = make(request, 5000);
  session.sample(session.test());
  EXPECT_FALSE(session.test().sampled());
  EXPECT_TRUE(told.empty());
  session.budget() = Budget::of_work(2000 * session.test().subject.cost);
  session.sample(session.test(), 1, 1);
  EXPECT_EQ(session.test().used(), 2000);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("2,000 of them"), std::string::npos) << told[0];
  session.sample(session.test(), 2, 1);
  EXPECT_EQ(session.test().used(), 1024);  // never fewer
  Request all = request;
  all.all = true;
  Session whole = make(all, 5000);
  whole.budget() = Budget::of_work(1);
  whole.sample(whole.test());
  EXPECT_EQ(whole.test().used(), 5000);
}

TEST(Session, RecordsTraversalsInTheRun) {
  FolderForTest folder;
  Request request;
  request.out = "run";
  Session session = make(request);
  observers::Predictions predictions(session.task(), false);
  stream::Pass pass(session.test().subject);
  auto watched = pass.watch(predictions);
  session.run(pass, session.test(), "everything");
  EXPECT_EQ(pass.state(watched).samples, 600);
  session.record(session.test(), "a sample", 50);
  session.folder("check");
  session.finish(1.5, 0);
  auto run = nlohmann::json::parse(read_file("run/run.json", 1 << 20));
  EXPECT_EQ(run["passes"], (nlohmann::json{{"test", 1}}));
  EXPECT_EQ(run["traversals"].size(), 2u);
  EXPECT_EQ(run["traversals"][0]["reason"], "everything");
  EXPECT_EQ(run["traversals"][0]["inputs"], 600);
  EXPECT_EQ(run["traversals"][1]["whole"], false);
  EXPECT_EQ(run["budget"], "normal");
}

TEST(Session, FilesAndFlags) {
  FolderForTest folder;
  onnx::write_model(zoo::make("mlp:784-4-10", {.seed = 1}), "m.onnx");
  EXPECT_THROW(Session(Request{}), InputError);  // no model
  Request request;
  request.model = "m.onnx";
  {
    Session session(request);
    EXPECT_FALSE(session.has_data());
    EXPECT_THROW(session.test(), InputError);
  }
  folder.write("netmend.toml",
               "model = { file = \"m.onnx\", output_kind = \"logits\" }\n"
               "data = { test = \"glyphs:test\", train = \"glyphs:train\" }\n"
               "checks = { skip = [\"robustness\"] }\n");
  Session session{Request{}};
  EXPECT_EQ(session.model_name(), "m.onnx");
  EXPECT_TRUE(session.has_data());
  ASSERT_NE(session.train(), nullptr);
  EXPECT_EQ(session.words(), "");
  EXPECT_EQ(session.config().checks_skip, (std::vector<std::string>{"robustness"}));
  request.data = "glyphs:test", request.output = "no-such-value";
  EXPECT_THROW(Session{request}, InputError);
}

TEST(Config, ProgramsAreNeverTakenFromAFileBesideAModel) {
  try {
    parse_config("checks = { programs = [\"./x\"] }\n", "netmend.toml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("may not name programs"), std::string::npos);
  }
}

TEST(Config, OldNamesOfKeysAreRead) {
  EXPECT_EQ(parse_config("model = { gives = \"logits\" }\n", "x").overrides.output_kind, "logits");
  EXPECT_EQ(parse_config("model.output_kind = \"probabilities\"\n", "x").overrides.output_kind, "probabilities");
  EXPECT_THROW(parse_config("model.output_kind = \"scores\"\n", "x"), InputError);
  EXPECT_THROW(parse_config("model.output_kimd = \"logits\"\n", "x"), InputError);
}

}  // namespace
}  // namespace netmend::session
