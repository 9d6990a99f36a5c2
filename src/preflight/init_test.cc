#include "preflight/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "dataset/image_file.h"
#include "onnx/writer.h"
#include "preflight/discover.h"
#include "session/config.h"
#include "session/folder_for_test.h"
#include "zoo/zoo.h"

namespace netmend::preflight {
namespace {

using session::FolderForTest;

std::string value_of(const ConfigDraft& draft, const std::string& key) {
  for (const session::Fact& fact : draft.facts)
    if (fact.key == key) return fact.value;
  return "";
}

TEST(Discover, ListsAndDictionariesOfJsonAndPython) {
  const std::vector<std::string> two{"cat", "dog"};
  EXPECT_EQ(parse_words("[\"cat\", \"dog\"]"), two);
  EXPECT_EQ(parse_words("['cat', 'dog']"), two);
  EXPECT_EQ(parse_words("{0: 'cat', 1: 'dog'}"), two);
  EXPECT_EQ(parse_words("{\"1\": \"dog\", \"0\": \"cat\"}"), two);
  EXPECT_TRUE(parse_words("{0: 'cat', 2: 'dog'}").empty());  // a name would move to another number
  EXPECT_TRUE(parse_words("['cat', 'dog'").empty());
  EXPECT_TRUE(parse_words("cat, dog").empty());
  EXPECT_TRUE(parse_words("").empty());
}

TEST(Discover, ClassesAreInMetadataOrBesideTheModel) {
  const FolderForTest folder;
  model::Graph graph = zoo::make("mlp:4-3-2", {.seed = 1});
  EXPECT_TRUE(find_classes(graph, "m.onnx").names.empty());
  folder.write("labels.txt", "no\nyes\n");
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (std::vector<std::string>{"no", "yes"}));
  graph.metadata["names"] = "{0: 'off', 1: 'on'}";
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (std::vector<std::string>{"off", "on"}));
}

TEST(Discover, WrongTypesBesideTheModelAreNoPreprocessing) {
  const FolderForTest folder;
  const model::Graph graph = zoo::make("lenet5", {.seed = 1});
  folder.write("preprocessor_config.json", R"({"image_mean": "x", "image_std": null, "rescale_factor": [1]})");
  for (const session::Fact& fact : find_preprocessing(graph, "m.onnx"))
    EXPECT_TRUE(fact.key.ends_with(".layout")) << fact.key;
  folder.write("preprocessor_config.json",
               R"({"image_mean": [0.5], "image_std": [0.25], "rescale_factor": 0.5, "size": 32, "resample": "x"})");
  std::string all;
  for (const session::Fact& fact : find_preprocessing(graph, "m.onnx")) all += fact.key + "=" + fact.value + "\n";
  for (const char* part : {"scale=0.5", "mean=[0.5]", "std=[0.25]", "resize={ short = 32, filter = \"bilinear\" }"})
    EXPECT_NE(all.find(part), std::string::npos) << all;
}

TEST(Init, DraftsWhatModelAndDataTell) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("mlp:784-8-10", {.seed = 1}), "m.onnx");
  InitRequest request;
  request.model = "m.onnx", request.data = "glyphs";
  const ConfigDraft draft = draft_config(request);
  EXPECT_EQ(draft.file, "netmend.toml");
  EXPECT_FALSE(draft.existed);
  EXPECT_EQ(value_of(draft, "model.file"), "\"m.onnx\"");
  EXPECT_EQ(value_of(draft, "model.kind"), "\"classes\"");
  EXPECT_EQ(value_of(draft, "data.train"), "\"glyphs:train\"");
  EXPECT_EQ(value_of(draft, "data.test"), "\"glyphs:test\"");
  EXPECT_EQ(draft.metric, "accuracy");
  ASSERT_TRUE(draft.preflight.has_value());
  const session::Config read = session::parse_config(draft.text, draft.file);
  EXPECT_EQ(read.test, "glyphs:test");
  EXPECT_EQ(read.overrides.kind, "classes");
  // Values of one table stand together, in the order people read them.
  const auto first = draft.text.find("model.file"), data = draft.text.find("data.test"),
             goal = draft.text.find("goal.metric");
  EXPECT_LT(first, data);
  EXPECT_LT(data, goal);
}

TEST(Init, UpdateKeepsWhatIsThere) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("mlp:784-8-10", {.seed = 1}), "m.onnx");
  folder.write("netmend.toml",
               "# mine\nmodel = { file = \"m.onnx\", kind = \"classes\" }\ngoal.metric = \"balanced_accuracy\"\n");
  InitRequest request;
  request.model = "m.onnx", request.test = "glyphs:test", request.update = true;
  const ConfigDraft draft = draft_config(request);
  EXPECT_TRUE(draft.existed);
  EXPECT_EQ(draft.text.find("# mine\n"), 0u);
  const session::Config read = session::parse_config(draft.text, draft.file);
  EXPECT_EQ(read.overrides.metric, "balanced_accuracy");
  EXPECT_EQ(read.test, "glyphs:test");
  EXPECT_EQ(read_file("netmend.toml", 1 << 20).find("glyphs"), std::string::npos);  // nothing was written
}

TEST(Init, WithoutDataTheModelAloneIsDrafted) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("mlp:4-3-2", {.seed = 1}), "m.onnx");
  InitRequest request;
  request.model = "m.onnx";
  const ConfigDraft draft = draft_config(request);
  EXPECT_FALSE(draft.preflight.has_value());
  EXPECT_FALSE(draft.blocked());
  EXPECT_NE(draft.text.find("# data.test"), std::string::npos);
  request.output = "no-such-output";
  EXPECT_THROW(draft_config(request), InputError);
}

std::string idx_of(std::vector<int> sizes, const std::string& bytes) {
  std::string out = {0, 0, 8, char(sizes.size())};
  for (int size : sizes) out += std::string{0, 0, char(size >> 8), char(size & 255)};
  return out + bytes;
}

/// MATLAB's and R's labels: one more than outputs, and none is 0.
TEST(Init, LabelsThatCountFromOneAreRecognised) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("mlp:4-3", {.seed = 1}), "m.onnx");
  std::string pixels, labels;
  for (int i = 0; i < 300; ++i) {
    for (int k = 0; k < 4; ++k) pixels += char((i * 37 + k * 61) % 256);
    labels += char(1 + i % 3);
  }
  folder.write("x", idx_of({300, 4}, pixels));
  folder.write("y", idx_of({300}, labels));
  InitRequest request;
  request.model = "m.onnx", request.data = "idx:x,labels=y", request.jobs = 1;
  const ConfigDraft draft = draft_config(request);
  EXPECT_NE(value_of(draft, "data.test").find("first=1"), std::string::npos) << value_of(draft, "data.test");
  labels[0] = 0;  // then they do not
  folder.write("y", idx_of({300}, labels));
  EXPECT_THROW(draft_config(request), InputError);
}

TEST(Init, ImagesOfAnotherSizeAreResized) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("lenet5", {.seed = 1}), "m.onnx");
  for (int i = 0; i < 60; ++i) {
    const std::string place = fmt::format("photos/{}", i % 10);
    std::filesystem::create_directories(place);
    dataset::write_png(fmt::format("{}/{}.png", place, i), 20, 24, 1, std::vector<uint8_t>(20 * 24, uint8_t(i * 4)));
  }
  InitRequest request;
  request.model = "m.onnx", request.data = "images:photos", request.jobs = 1;
  const ConfigDraft draft = draft_config(request);
  EXPECT_EQ(value_of(draft, "input." + draft.input + ".resize"), "{ height = 28, width = 28 }");
  const auto input = session::parse_config(draft.text, "netmend.toml").input;
  EXPECT_EQ(input.at("resize"), "28x28");
}

TEST(Init, SaysThatTrainingRowsOfATableAreNotKnown) {
  const FolderForTest folder;
  onnx::write_model(zoo::make("mlp:2-2", {.seed = 1}), "m.onnx");
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{},{}\n", i % 7, i % 5, i % 2 ? "yes" : "no");
  folder.write("t.csv", rows);
  auto said = [](const std::string& data) {
    InitRequest request;
    request.model = "m.onnx", request.data = data, request.jobs = 1;
    const ConfigDraft draft = draft_config(request);
    for (const Line& line : draft.preflight->lines)
      if (line.text.find("no training rows are given") != std::string::npos) return !line.holds;
    return draft.blocked();
  };
  EXPECT_TRUE(said("csv:t.csv,label=y"));
  EXPECT_FALSE(said("csv:t.csv,label=y,train=t.csv"));
}

}  // namespace
}  // namespace netmend::preflight
