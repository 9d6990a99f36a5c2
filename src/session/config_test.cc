#include "session/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "dataset/preprocess.h"
#include "dataset/spec.h"
#include "session/folder_for_test.h"
#include "session/input_names.h"
#include "session/toml_edit.h"

namespace netmend::session {
namespace {

std::string config_error(const std::string& text) {
  try {
    parse_config(text, "dir/netmend.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigErrors, NameLineKeyAndWhatWasExpected) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"a = [", "line 1"},
           {"\n\nmodel = 3\n", "line 3: model should be a table"},
           {"modle = {}\n", "unknown key modle (did you mean model?)"},
           {"model = { fil = \"x\" }\n", "unknown key model.fil (did you mean file?)"},
           {"model.file = 3\n", "model.file should be a string in quotes"},
           {"model.kind = \"clases\"\n", "did you mean classes"},
           {"goal.metric = \"acuracy\"\n", "did you mean accuracy"},
           {"goal.expect = 91.3\n", "goal.expect should be a fraction"},
           {"goal.expect = nan\n", "goal.expect should be a fraction"},
           {"goal.expect = \"0.9\"\n", "goal.expect should be a fraction"},
           {"goal.expect = true\n", "goal.expect should be a fraction"},
           {"goal.threshold = -0.1\n", "goal.threshold should be a probability"},
           {"goal.tolerance = -1\n", "goal.tolerance should be a number of 0 or more"},
           {"gate.accuracy = 0.9\n", "gate.accuracy should be a limit in quotes"},
           {"classes = \"a\"\n", "classes should be a list"},
           {"classes = [\"a\", \"b\", \"a\"]\n", "classes lists `a` twice"},
           {"classes = [\"\"]\n", "a class has an empty name"},
           {"classes = [true]\n", "classes should be a number"},
           {"data.test = \"imagse:x\"\n", "data.test: there is no data set or format 'imagse' (did you mean images?)"},
           {"data.test = \"csv:a.csv,labl=y\"\n", "did you mean label"},
           {"data.test = \"csv:\\\"a.csv\"\n", "is not closed"},
           {"data.groups = \"a\"\n", "data.groups should be a list"},
           {"input.x.layuot = \"NCHW\"\n", "unknown key input.x.layuot (did you mean layout?)"},
           {"input.x = \"NCHW\"\n", "input.x should be a table"},
           {"input.x.resize = 32\n", "input.x.resize should be a table"},
           {"input.x.resize = { antialias = \"yes\" }\n", "antialias should be true or false"},
           {"input.x.resize = { height = 32 }\n", "input.x.resize should be a table with both height and width"},
           {"input.x.resize = { width = 32 }\n", "input.x.resize should be a table with both height and width"},
           {"input = { a = { scale = 1 }, b = { scale = 2 } }\n", "preprocessed differently"},
           {"accept.\"a:b\" = {}\n", "a table with a reason"},
           {"accept.\"a:b\" = { reason = \"r\", until = \"2027-02-30\" }\n", "should be a date"},
           {"accept.\"a:b\" = { reason = \"r\", value = -1 }\n", "a number of 0 or more"},
           {"accept.\"a:b\" = { reason = \"r\", value = inf }\n", "a number of 0 or more"},
           {"accept.\"a:b\" = { reason = \"r\", level = 0.5 }\n", "a factor of 1 or more"},
           {"checks.only = \"data\"\n", "checks.only should be a list"}}) {
    EXPECT_NE(config_error(text).find(words), std::string::npos) << text << config_error(text);
    EXPECT_EQ(config_error(text).find("dir/netmend.toml, line "), 0u) << config_error(text);
  }
}

TEST(ConfigErrors, ADamagedFileIsRefusedAndNeverCrashes) {
  const std::string whole =
      "model = { file = \"m.onnx\", kind = \"classes\" }\nclasses = [\"ü\", \"a:b\"]\n"
      "[input.x]\nscale = \"1/255\"\nmean = [0.5, 0.5]\nresize = { short = 32, crop = 28 }\n"
      "[data]\ntest = 'csv:\"a,b.csv\",label=y'\n[gate]\n\"recall[a:b]\" = \">= 0.5\"\n"
      "[accept]\n\"weak-slice:x\" = { reason = \"r\", until = \"2027-01-31\", value = 0.1, level = 2 }\n";
  EXPECT_EQ(config_error(whole), "");
  int refused = 0;
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    refused += config_error(whole.substr(0, cut)) != "";
    for (const char put : {'"', '[', '\0', '\xff', '='}) {
      std::string damaged = whole;
      damaged[cut] = put;
      refused += config_error(damaged) != "";
    }
  }
  EXPECT_GT(refused, 1000);
}

/// Letters beyond ASCII outside of quotes are an error like any other, wherever they stand.
TEST(ConfigErrors, NothingNestsWithoutEnd) {
  auto repeated = [](const std::string& part, const std::string& between) {
    std::string text = part;
    for (int i = 0; i < 100'000; ++i) text += between + part;
    return text;
  };
  for (const std::string& text : {repeated("a", ".") + " = 1\n", "[" + repeated("a", ".") + "]\n",
                                  "[[" + repeated("\"a\"", " . ") + "]]\n", "x = " + repeated("[", "") + "\n",
                                  "x = " + repeated("{a=", "") + "\n", "x = { " + repeated("a", ".") + " = 1 }\n"})
    EXPECT_THROW(parse_config(text, "netmend.toml"), InputError) << text.substr(0, 20);
  // Dots of numbers and of paths are no depth.
  std::string numbers =
      "data.test = 'npz:../../../../../../../../../../../../../../../../../../../../x.npz'\ngoal.threshold = 0.5\n";
  EXPECT_NO_THROW(parse_config("input.x.mean = [" + repeated("0.5", ", ") + "]\n" + numbers, "netmend.toml"));
}

TEST(TomlEditWords, OfOthersWriteNoLinesOfTheirOwn) {
  const std::string hostile = "x\"\n[gate]\naccuracy = \">= 0\"\n#\xe9\x1b";
  const std::vector<Fact> facts = {{"classes", "[" + toml_string(hostile) + "]", "names of " + hostile},
                                   {"input." + toml_key(hostile) + ".scale", "0.5", hostile}};
  for (const std::string& text : {fresh_toml(facts, ""), updated_toml("goal.expect = 0.5\n", facts, "f"),
                                  updated_toml("input = { y = { scale = 1 } }\n", {facts[0]}, "f")}) {
    const Config config = parse_config(text, "netmend.toml");
    EXPECT_TRUE(config.gate.empty()) << text;
    EXPECT_EQ(config.classes.size(), 1u) << text;
  }
}

TEST(ConfigErrors, LettersOutsideOfQuotesAreRefused) {
  for (const char* text : {"ü = 1\n", "a = ü\n", "a ü = 1\n", "[ü]\n", "a = [1, ü]\n", "\u00a1\n", "a = 1 \u0499\n"})
    EXPECT_NE(config_error(text), "") << text;
}

TEST(ConfigPaths, AreMeantFromTheFile) {
  const Config read = parse_config(
      "model = { file = \"m.onnx\", reference = \"ref.npz\" }\n"
      "data = { train = \"npy:x.npy,y=y.npy\", test = 'csv:\"a,b.csv\",label=y,train=tr.csv', meta = \"meta.csv\" }\n"
      "gate.must_pass = \"golden.csv\"\naccept.\"inputs:known.csv\" = { reason = \"r\" }\n",
      "sub/dir/netmend.toml");
  EXPECT_EQ(read.path, "sub/dir/netmend.toml");
  EXPECT_EQ(read.model, "sub/dir/m.onnx");
  EXPECT_EQ(read.reference, "sub/dir/ref.npz");
  EXPECT_EQ(read.meta, "sub/dir/meta.csv");
  EXPECT_EQ(read.gate.at(0).second, "sub/dir/golden.csv");
  EXPECT_EQ(read.accepted_inputs.at(0).file, "sub/dir/known.csv");
  EXPECT_TRUE(read.accepted.empty());
  const dataset::Spec train = dataset::parse_spec(read.train), test = dataset::parse_spec(read.test);
  EXPECT_EQ(train.rest, "sub/dir/x.npy");
  EXPECT_EQ(train.options.at("y"), "sub/dir/y.npy");
  EXPECT_EQ(test.rest, "sub/dir/a,b.csv");
  EXPECT_EQ(test.options.at("train"), "sub/dir/tr.csv");
  EXPECT_EQ(test.options.at("label"), "y");
  const Config elsewhere =
      parse_config("model.file = \"/m.onnx\"\ndata.test = \"idx:/x,labels=/y\"\n", "sub/netmend.toml");
  EXPECT_EQ(elsewhere.model, "/m.onnx");
  EXPECT_EQ(elsewhere.test, "idx:/x,labels=/y");
  EXPECT_EQ(parse_config("data.test = \"glyphs:test\"\n", "sub/netmend.toml").test, "glyphs:test");
}

/// Every option that names a file, for every reader that has it.
TEST(ConfigPaths, FilesInsideADataSpecToo) {
  for (const auto& [spec, option] : std::vector<std::pair<std::string, std::string>>{{"images:photos", "meta"},
                                                                                     {"csv:a.csv", "train"},
                                                                                     {"csv:a.csv", "meta"},
                                                                                     {"idx:x.idx", "labels"},
                                                                                     {"npy:x.npy", "y"},
                                                                                     {"text:a.tsv", "vocab"},
                                                                                     {"text:a.tsv", "train"},
                                                                                     {"mnist:test", "meta"}}) {
    const Config read = parse_config("data.test = " + toml_string(spec + "," + option + "=other"), "sub/netmend.toml");
    EXPECT_EQ(dataset::parse_spec(read.test).options.at(option), "sub/other") << spec;
  }
  const Config name = parse_config("data.test = \"npz:a.npz,x=images,y=labels\"\n", "sub/netmend.toml");
  EXPECT_EQ(dataset::parse_spec(name.test).options.at("y"), "labels");  // of NPZ a name in the file
}

TEST(ConfigPaths, HostileNamesInSpecsComeThrough) {
  for (const std::string path : {"a,b.csv", "a b.csv", "a\"b.csv", "a:b.csv", "ü×.csv", "a\\b,c.csv", "label=y.csv"}) {
    dataset::Spec spec;
    spec.head = "csv", spec.rest = path;
    spec.options = {{"label", "y"}, {"classes", dataset::join_list({"a:b", "c,d", "e\"f", "plain"})}};
    const Config read = parse_config("data.test = " + toml_string(dataset::spec_text(spec)) + "\n", "netmend.toml");
    const dataset::Spec again = dataset::parse_spec(read.test);
    EXPECT_EQ(again.rest, path);
    EXPECT_EQ(again.options, spec.options) << read.test;
    EXPECT_EQ(dataset::split_list(again.options.at("classes")),
              (std::vector<std::string>{"a:b", "c,d", "e\"f", "plain"}));
  }
}

TEST(ConfigValues, PreprocessingBecomesSpecOptions) {
  const Config read = parse_config(
      "input.x = { layout = \"NCHW\", color = \"BGR\", scale = \"1/255\", mean = [0.5, 0.25], std = 2, "
      "resize = { height = 32, width = 48, filter = \"bicubic\", antialias = false } }\n",
      "x");
  const dataset::Preprocess made = dataset::parse_preprocess(read.input);
  EXPECT_EQ(made.layout, "NCHW");
  EXPECT_EQ(made.color, "BGR");
  EXPECT_DOUBLE_EQ(made.scale.value(), 1.0 / 255);
  EXPECT_EQ(made.mean, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(made.std, (std::vector<double>{2}));
  ASSERT_TRUE(made.resize.has_value());
  EXPECT_EQ(made.resize->height, 32);
  EXPECT_EQ(made.resize->width, 48);
  EXPECT_EQ(made.resize->filter, "bicubic");
  EXPECT_FALSE(made.resize->antialias);
  const auto cropped = parse_config("input.x.resize = { short = 256, crop = 224 }\n", "x").input;
  EXPECT_EQ(dataset::parse_preprocess(cropped).resize->crop, 224);
  const std::string same = "input = { a = { scale = 2 }, b = { scale = 2 } }\n";
  EXPECT_EQ(parse_config(same, "x").input.at("scale"), "2");
}

TEST(ConfigValues, LimitsStandInTheOrderOfTheFile) {
  const Config read = parse_config(
      "[gate]\nmae = \"<= 1\"\n\"recall[b]\" = \">= 0.5\"\naccuracy = \">= 0.9\"\n\"recall[a]\" = \">= 0.5\"\n", "x");
  std::vector<std::string> names;
  for (const auto& [name, limit] : read.gate) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"mae", "recall[b]", "accuracy", "recall[a]"}));
  EXPECT_EQ(read.gate_lines.at("accuracy"), 4);
  const Config inline_form = parse_config("gate = { mae = \"<= 1\", auc = \"> 0\", f1 = \"> 0\" }\n", "x");
  EXPECT_EQ(inline_form.gate.at(1).first, "auc");
}

TEST(ConfigValues, AnErrorMayBeExpectedAboveOne) {
  EXPECT_EQ(parse_config("goal = { metric = \"mae\", expect = 12.5 }\n", "x").expect, 12.5);
  EXPECT_EQ(parse_config("goal.metric = \"mae\"\n", "x").expect, -1);
  const Config none = parse_config("", "x");
  EXPECT_TRUE(none.gate.empty() && none.classes.empty() && none.accepted.empty() && none.input.empty());
  EXPECT_EQ(none.overrides.threshold, 0.5);
  const auto accepted = parse_config("accept.\"a:b\" = { reason = \"r\" }\n", "x").accepted.at(0);
  EXPECT_TRUE(std::isinf(accepted.value));
  EXPECT_EQ(accepted.factor, 1.5);
}

TEST(ConfigFile, IsFoundBesideTheModelThenUpwards) {
  const FolderForTest folder;
  std::filesystem::create_directories("a/b");
  std::filesystem::create_directories("models");
  folder.write("netmend.toml", "model.output = \"top\"\n");
  folder.write("models/netmend.toml", "model.output = \"beside\"\n");
  EXPECT_EQ(read_config("", "models/m.onnx").output, "beside");
  EXPECT_EQ(read_config("", "a/m.onnx").output, "top");
  EXPECT_EQ(read_config("models/netmend.toml", "a/m.onnx").output, "beside");
  std::filesystem::current_path(folder.path / "a/b");
  EXPECT_EQ(find_config(""), "../../netmend.toml");
  EXPECT_EQ(read_config("", "m.onnx").output, "top");
  EXPECT_THROW(read_config("no-such.toml", ""), InputError);
  std::filesystem::current_path(folder.path);
}

TEST(ConfigFile, AFileBesideAModelElsewhereDecidesNothing) {
  const FolderForTest folder;
  std::filesystem::create_directories("models");
  const std::string theirs =
      "classes = [\"a\", \"b\"]\ngate.accuracy = \">= 0\"\naccept.\"a:b\" = { reason = \"r\" }\nchecks.skip = "
      "[\"data\"]\n";
  folder.write("models/netmend.toml", theirs);
  Config read = read_config("", "models/m.onnx");
  EXPECT_EQ(read.classes.size(), 2u);
  EXPECT_TRUE(read.gate.empty() && read.accepted.empty() && read.checks_skip.empty());
  EXPECT_EQ(read.undecided, "gate, accept, checks");
  EXPECT_EQ(read.decides, "");
  folder.write("netmend.toml", "gate.accuracy = \">= 0.99\"\n");
  read = read_config("", "models/m.onnx");
  EXPECT_EQ(read.classes.size(), 2u);
  EXPECT_EQ(read.gate.at(0).second, ">= 0.99");
  EXPECT_EQ(read.decides, "netmend.toml");
  EXPECT_EQ(read.gate_lines.at("accuracy"), 1);
  for (const Config& own : {read_config("models/netmend.toml", "models/m.onnx"), read_config("", "./m.onnx")})
    EXPECT_EQ(own.undecided, "");
  EXPECT_EQ(read_config("models/netmend.toml", "models/m.onnx").gate.at(0).second, ">= 0");
  std::filesystem::current_path(folder.path / "models");
  EXPECT_EQ(read_config("", "m.onnx").gate.at(0).second, ">= 0");  // one's own folder
  EXPECT_EQ(read_config("", (folder.path / "models/m.onnx").string()).gate.at(0).second, ">= 0");
  std::filesystem::current_path(folder.path);
}

TEST(ConfigFile, AcceptedInputsEndWithTheirDay) {
  const FolderForTest folder;
  folder.write("known.csv", "id\na\nb\n");
  folder.write("old.csv", "id\nc\n");
  folder.write("netmend.toml",
               "accept.\"inputs:known.csv\" = { reason = \"r\", until = \"2999-12-31\" }\n"
               "accept.\"inputs:old.csv\" = { reason = \"r\", until = \"2020-01-01\" }\n");
  EXPECT_EQ(accepted_inputs(read_config("", "")), (std::unordered_set<std::string>{"a", "b"}));
  folder.write("netmend.toml", "accept.\"inputs:gone.csv\" = { reason = \"r\" }\n");
  EXPECT_THROW(accepted_inputs(read_config("", "")), InputError);
}

TEST(InputNamesFile, HostileListsAreRead) {
  const FolderForTest folder;
  folder.write("bom.csv", "\xef\xbb\xbfid,loss\r\na,1\r\n\"b \"\"c\"\"\",2\r\n");
  EXPECT_EQ(read_names("bom.csv"), (std::unordered_set<std::string>{"a", "b \"c\""}));
  folder.write("sample.csv", "loss,sample\n1,7\n2\n3,8");  // a row too short, and no last end of line
  EXPECT_EQ(read_names("sample.csv"), (std::unordered_set<std::string>{"7", "8"}));
  folder.write("both.csv", "sample,id\n7,x\n");
  EXPECT_EQ(read_names("both.csv"), std::unordered_set<std::string>{"x"});
  folder.write("nothing.csv", "");
  folder.write("blank.txt", " \n\n\t\n");
  for (const char* file : {"nothing.csv", "blank.txt", "gone.csv"}) EXPECT_THROW(read_names(file), InputError) << file;
}

}  // namespace
}  // namespace netmend::session
