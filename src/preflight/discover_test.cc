#include "preflight/discover.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "dataset/preprocess.h"
#include "onnx/writer.h"
#include "preflight/init.h"
#include "session/config.h"
#include "session/folder_for_test.h"
#include "zoo/zoo.h"

namespace netmend::preflight {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

TEST(ParseWords, EscapesAreThoseOfJsonAndPython) {
  EXPECT_EQ(parse_words(R"(["caf\u00e9", "a\"b", "a\\b", "\ud83d\ude00"])"), (Words{"café", "a\"b", "a\\b", "😀"}));
  EXPECT_EQ(parse_words(R"({"0": "caf\u00e9", "1": "a/b"})"), (Words{"café", "a/b"}));
  EXPECT_EQ(parse_words(R"(['it\'s', "it's", 'say "hi"', 'a\\b'])"), (Words{"it's", "it's", "say \"hi\"", "a\\b"}));
  EXPECT_EQ(parse_words("('a', 'b')"), (Words{"a", "b"}));
  EXPECT_EQ(parse_words(" [ 'a' ,\n 'b' , ] "), (Words{"a", "b"}));
  EXPECT_EQ(parse_words("['a: b', '{c}', '[d]', 'e,f']"), (Words{"a: b", "{c}", "[d]", "e,f"}));
}

TEST(ParseWords, WhatIsNoListOfWordsIsNone) {
  for (const char* text : {"",
                           " ",
                           "[",
                           "{",
                           "(",
                           "[]",
                           "{}",
                           "[1, 2]",
                           "['a', 2]",
                           "{'a': 'b'}",
                           "{0: 1}",
                           "{0 'a'}",
                           "{0: 'a', 0: 'b'}",
                           "{1: 'a', 2: 'b'}",
                           "{-1: 'a'}",
                           "['a",
                           "['a\\",
                           "null",
                           "'a'",
                           "{99999999999999999999: 'a'}",
                           "{:'a'}",
                           "[['a']]"})
    EXPECT_TRUE(parse_words(text).empty()) << text;
}

/// Whatever a file beside a model holds, looking at it ends and never crashes.
TEST(ParseWords, AnyCutOrChangedTextIsReadOrRefused) {
  const std::string whole = R"({"0": "a\u00e9", 1: 'b\'c', "2": "d"})";
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_TRUE(parse_words(whole.substr(0, cut)).empty()) << cut;
    for (const char put : {'"', '\'', '\\', '{', '}', ':', '\0', '\xff'}) {
      std::string damaged = whole;
      damaged[cut] = put;
      EXPECT_LE(parse_words(damaged).size(), 3u);
    }
  }
}

TEST(FindClasses, TakesTheFirstSourceThatCanBeUsed) {
  const session::FolderForTest folder;
  model::Graph graph = zoo::make("mlp:4-3-2", {.seed = 1});
  folder.write("config.json", R"({"id2label": {"1": "dög", "0": "say \"hi\""}, "other": [1]})");
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (Words{"say \"hi\"", "dög"}));
  EXPECT_EQ(find_classes(graph, "m.onnx").source, "config.json, `id2label`");
  folder.write("classes.json", "[\"a\", \"b\"]");
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (Words{"a", "b"}));
  folder.write("labels.txt", "\xef\xbb\xbf c \r\nd\r\n\r\n");
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (Words{"c", "d"}));
  EXPECT_EQ(find_classes(graph, "m.onnx").source, "labels.txt");
  folder.write("labels.txt", "c\n\nd\n");  // a gap would shift the names behind it
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (Words{"a", "b"}));
  folder.write("labels.txt", "c\nc\n");
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (Words{"a", "b"}));
  graph.metadata["names"] = "['x', 'x']", graph.metadata["labels"] = "['y', 'z']";
  EXPECT_EQ(find_classes(graph, "m.onnx").names, (Words{"y", "z"}));
  folder.write("labels.txt", "");
  folder.write("classes.json", "");
  folder.write("config.json", "[");
  graph.metadata.clear();
  EXPECT_TRUE(find_classes(graph, "m.onnx").names.empty());
}

std::map<std::string, std::string> facts_of(const model::Graph& graph) {
  std::map<std::string, std::string> all;
  for (const session::Fact& fact : find_preprocessing(graph, "m.onnx")) {
    EXPECT_TRUE(all.emplace(fact.key, fact.value).second) << fact.key << " twice";
    EXPECT_FALSE(fact.source.empty());
  }
  return all;
}

dataset::Preprocess read_facts(const model::Graph& graph) {
  const std::string text = session::fresh_toml(find_preprocessing(graph, "m.onnx"), "");
  return dataset::parse_preprocess(session::parse_config(text, "netmend.toml").input);
}

TEST(FindPreprocessing, WhatHuggingFaceKeepsReadsBack) {
  const session::FolderForTest folder;
  const model::Graph graph = zoo::make("lenet5", {.seed = 1});
  folder.write("preprocessor_config.json",
               R"({"do_rescale": true, "rescale_factor": 0.00392156862745098, "image_mean": [0.485], "image_std":
                   [0.229], "size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224},
                   "do_center_crop": true, "resample": 3})");
  const dataset::Preprocess made = read_facts(graph);
  EXPECT_DOUBLE_EQ(made.scale.value(), 1.0 / 255);
  EXPECT_EQ(made.mean, std::vector<double>{0.485});
  EXPECT_EQ(made.layout, "NCHW");
  EXPECT_EQ(made.resize->shorter, 256);
  EXPECT_EQ(made.resize->crop, 224);
  EXPECT_EQ(made.resize->filter, "bicubic");
  folder.write("preprocessor_config.json",
               R"({"do_rescale": false, "do_normalize": false, "image_mean": [0.5], "size": {"height": 32, "width": 48},
                   "resample": 99})");
  const dataset::Preprocess other = read_facts(graph);
  EXPECT_FALSE(other.scale.has_value());
  EXPECT_TRUE(other.mean.empty());
  EXPECT_EQ(other.resize->height, 32);
  EXPECT_EQ(other.resize->width, 48);
  folder.write("preprocessor_config.json", R"({"do_resize": false, "size": 64, "do_rescale": false})");
  EXPECT_FALSE(read_facts(graph).resize.has_value());
}

TEST(FindPreprocessing, MetadataOfTheModelReadsBackWhateverItHolds) {
  const session::FolderForTest folder;
  model::Graph graph = zoo::make("lenet5", {.seed = 1});
  graph.values[size_t(graph.inputs.at(0))].name = "serving \"default\":0";
  graph.metadata["netmend.input.scale"] = "1/255";
  graph.metadata["netmend.input.mean"] = "0.5:.25", graph.metadata["netmend.input.std"] = "1e-3";
  const dataset::Preprocess made = read_facts(graph);
  EXPECT_EQ(made.mean, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(made.std, std::vector<double>{1e-3});
  EXPECT_EQ(facts_of(graph).size(), 4u);
  // Words where numbers belong are quoted, so that they cannot become other lines of netmend.toml.
  graph.metadata["netmend.input.mean"] = "0]\ngate.accuracy = \">= 0\"\n#";
  const std::string text = session::fresh_toml(find_preprocessing(graph, "m.onnx"), "");
  EXPECT_TRUE(session::parse_config(text, "netmend.toml").gate.empty()) << text;
  graph.metadata = {{"mean", "[0.25]"}, {"std", "nothing"}, {"scale", "[\"x\"]"}};
  EXPECT_EQ(read_facts(graph).mean, std::vector<double>{0.25});
  EXPECT_EQ(facts_of(graph).size(), 2u);
}

TEST(FindSplits, AFolderOfImagesHasBothPartsOrNone) {
  const session::FolderForTest folder;
  fs::create_directories("a,b/train");
  EXPECT_FALSE(find_splits(dataset::parse_spec("images:\"a,b\"")).test.has_value());
  EXPECT_FALSE(find_splits(dataset::parse_spec("images:\"a,b\"")).train.has_value());
  fs::create_directories("a,b/val");
  const dataset::Splits splits = find_splits(dataset::parse_spec("images:\"a,b\",scale=1/255"));
  ASSERT_TRUE(splits.train && splits.test);
  EXPECT_EQ(dataset::parse_spec(splits.test->text).rest, "a,b/val");
  EXPECT_EQ(dataset::parse_spec(splits.train->text).rest, "a,b/train");
  EXPECT_EQ(splits.test->options.at("scale"), "1/255");
  fs::create_directories("a,b/test");
  EXPECT_EQ(find_splits(dataset::parse_spec("images:\"a,b\"")).test->rest, "a,b/test");
  EXPECT_FALSE(find_splits(dataset::parse_spec("csv:a")).test.has_value());
}

/// A model in a folder, a table with a comma in its name in another: the draft leads back to the same file.
TEST(InitPaths, LeadFromTheDraftToTheData) {
  const session::FolderForTest folder;
  fs::create_directories("models");
  fs::create_directories("my data");
  onnx::write_model(zoo::make("mlp:2-3-2", {.seed = 1}), "models/m.onnx");
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{},{}\n", i % 7, i % 5, i % 2 ? "yes: \"sure\"" : "no");
  folder.write("my data/t,1.csv", rows);
  folder.write("my data/meta.csv", "id,site\n0,x\n");
  InitRequest request;
  request.model = "models/m.onnx", request.test = "csv:\"my data/t,1.csv\",label=y,meta=\"my data/meta.csv\"";
  const ConfigDraft draft = draft_config(request);
  EXPECT_EQ(draft.file, "models/netmend.toml");
  folder.write(draft.file, draft.text);
  const session::Config read = session::read_config("", request.model);
  const dataset::Spec spec = dataset::parse_spec(read.test);
  EXPECT_TRUE(fs::equivalent(spec.rest, "my data/t,1.csv")) << read.test;
  EXPECT_TRUE(fs::equivalent(spec.options.at("meta"), "my data/meta.csv")) << read.test;
  EXPECT_TRUE(fs::equivalent(read.model, "models/m.onnx"));
  EXPECT_EQ(read.classes.size(), 2u);
  // Drafting again on top of it adds nothing.
  request.update = true, request.test = "";
  const ConfigDraft again = draft_config(request);
  EXPECT_TRUE(again.existed);
  EXPECT_EQ(again.text, draft.text);
}

/// What the preflight finds goes into the draft, whatever the classes are called.
TEST(InitClasses, AnOrderThatWasFoundIsAdopted) {
  const session::FolderForTest folder;
  const model::Graph graph = zoo::make("mlp:3-4", {.seed = 2});
  onnx::write_model(graph, "m.onnx");
  at::manual_seed(6);
  const at::Tensor x = at::randn({800, 3});
  const at::Tensor weight = graph.constant(graph.nodes.at(0).inputs.at(1));
  const at::Tensor wanted = at::matmul(x, weight.size(0) == 3 ? weight : weight.t()).argmax(1);
  const Words by_output{"say \"hi\"", "back\\slash", "a, b", "ü: ×"};  // read in the order of the alphabet
  std::string rows = "p,q,r,y\n";
  for (int64_t i = 0; i < 800; ++i) {
    std::string word = by_output[size_t(wanted[i].item<int64_t>())];
    for (size_t at = word.find('"'); at != std::string::npos; at = word.find('"', at + 2)) word.insert(at, 1, '"');
    rows += fmt::format("{},{},{},\"{}\"\n", x[i][0].item<float>(), x[i][1].item<float>(), x[i][2].item<float>(), word);
  }
  folder.write("t.csv", rows);
  InitRequest request;
  request.model = "m.onnx", request.test = "csv:t.csv,label=y,standardize=no";
  const ConfigDraft draft = draft_config(request);
  ASSERT_EQ(draft.adopted.size(), 1u);
  EXPECT_EQ(draft.adopted[0].id(), "class-order:labels");
  EXPECT_EQ(session::parse_config(draft.text, draft.file).classes, by_output) << draft.text;
  EXPECT_FALSE(draft.blocked());
}

TEST(InitClasses, TooFewNamesBelongToAnotherModel) {
  const session::FolderForTest folder;
  onnx::write_model(zoo::make("mlp:784-8-10", {.seed = 1}), "m.onnx");
  folder.write("labels.txt", "only\ntwo\n");
  InitRequest request;
  request.model = "m.onnx", request.test = "glyphs:test";
  EXPECT_THROW(draft_config(request), InputError);
}

TEST(InitGoal, AnAccuracyInTheMetadataIsExpected) {
  const session::FolderForTest folder;
  for (const auto& [text, expect] : std::vector<std::pair<std::string, double>>{
           {" 0.75 ", 0.75}, {"1", 1}, {"93", -1}, {"-0.1", -1}, {"nan", -1}, {"good", -1}, {"", -1}}) {
    model::Graph graph = zoo::make("mlp:4-3-2", {.seed = 1});
    graph.metadata["accuracy"] = text;
    onnx::write_model(graph, "m.onnx");
    InitRequest request;
    request.model = "m.onnx";
    EXPECT_EQ(session::parse_config(draft_config(request).text, "netmend.toml").expect, expect) << text;
  }
}

}  // namespace
}  // namespace netmend::preflight
