#include "session/target.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "dataset/memory_dataset.h"
#include "session/folder_for_test.h"
#include "session/input_names.h"
#include "session/toml_edit.h"

namespace netmend::session {
namespace {

using observers::SampleRow;
using observers::Side;

dataset::MemoryDataset some_data() {
  dataset::MemoryDataset data(dataset::table_feature({"a"}), at::zeros({4, 1}), at::tensor({0, 1, 1, 2}, at::kLong),
                              {"cat", "dog", "owl:day"});
  data.set_groups({"hour"}, {{"day"}, {"night"}, {"day"}, {"night"}});
  return data;
}

observers::PredictionSettings classes() {
  observers::PredictionSettings task;
  task.classes = {"cat", "dog", "owl:day"};
  return task;
}

SampleRow row(int64_t sample, double label, double predicted) {
  SampleRow row;
  row.sample = sample, row.label = label, row.predicted = predicted;
  row.right = label == predicted ? SampleRow::kRight : SampleRow::kWrong;
  return row;
}

std::string refusal(const std::string& text) {
  try {
    parse_target(text, classes(), some_data());
  } catch (const InputError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

TEST(Target, TakesSidesByClassConfusionAndSlice) {
  const dataset::MemoryDataset data = some_data();
  const auto one = parse_target("class=dog", classes(), data).target;
  EXPECT_EQ(one.side(row(1, 1, 0)), Side::kFailing);
  EXPECT_EQ(one.side(row(1, 1, 1)), Side::kPassing);
  EXPECT_EQ(one.side(row(0, 0, 1)), Side::kNeither);
  const NamedTarget pair = parse_target("confusion=1:owl:day", classes(), data);  // a number, and a name with a colon
  EXPECT_EQ(pair.words, "dog predicted as owl:day");
  EXPECT_EQ(pair.target.side(row(1, 1, 2)), Side::kFailing);
  EXPECT_EQ(pair.target.side(row(1, 1, 0)), Side::kNeither);
  const auto night = parse_target("slice=hour=night", classes(), data).target;
  EXPECT_EQ(night.side(row(1, 1, 0)), Side::kFailing);
  EXPECT_EQ(night.side(row(0, 0, 1)), Side::kNeither);
  EXPECT_EQ(night.side(row(0, 0, 0)), Side::kNeither);
  EXPECT_EQ(parse_target("", classes(), data).target.side(row(0, 0, 1)), Side::kFailing);
}

TEST(Target, WhatDoesNotExistIsNamedWithWhatDoes) {
  EXPECT_NE(refusal("clas=cat").find("did you mean class"), std::string::npos) << refusal("clas=cat");
  EXPECT_NE(refusal("class=catt").find("did you mean cat"), std::string::npos);
  EXPECT_NE(refusal("confusion=cat").find("two classes"), std::string::npos);
  EXPECT_NE(refusal("confusion=cat:cat").find("not a confusion"), std::string::npos);
  EXPECT_NE(refusal("slice=hour=nigt").find("did you mean night"), std::string::npos);
  EXPECT_NE(refusal("slice=our=night").find("did you mean hour"), std::string::npos);
  EXPECT_NE(refusal("class=").find("not understood"), std::string::npos);
}

TEST(InputNames, AreTheColumnOrTheFirstValueOfEachLine) {
  const FolderForTest folder;
  folder.write("table.csv", "sample,id,loss\n0,a b,1\n1,\"c,d\",2\n");
  folder.write("lines.txt", "a b\n\n  x  \n");
  folder.write("empty.csv", "id\n");
  EXPECT_EQ(read_names("table.csv"), (std::unordered_set<std::string>{"a b", "c,d"}));
  EXPECT_EQ(read_names("lines.txt"), (std::unordered_set<std::string>{"a b", "x"}));
  EXPECT_THROW(read_names("empty.csv"), InputError);
  const NamedTarget target = [&] {
    folder.write("two.csv", "id\n1\n3\n");
    return parse_target("inputs=two.csv", classes(), some_data());
  }();
  EXPECT_EQ(target.target.side(row(1, 1, 0)), Side::kFailing);
  EXPECT_EQ(target.target.side(row(2, 1, 0)), Side::kNeither);
  EXPECT_EQ(target.target.side(row(2, 1, 1)), Side::kPassing);  // failures of the list against all that is right
}

TEST(Target, BothSidesAreNeeded) {
  observers::PredictionResult result;
  result.samples = 10;
  result.per_class = {{"cat", 5}, {"dog", 5}, {"owl:day", 0}};
  result.confusion = {{5, 0, 0}, {3, 2, 0}, {0, 0, 0}};
  const dataset::MemoryDataset data = some_data();
  EXPECT_NO_THROW(require_both_sides(parse_target("class=dog", classes(), data), classes(), result, 3, 2));
  try {
    require_both_sides(parse_target("confusion=dog:owl:day", classes(), data), classes(), result, 0, 2);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.hint(), "It is wrongly predicted as cat (3).");
  }
  EXPECT_THROW(require_both_sides(parse_target("class=2", classes(), data), classes(), result, 0, 0), InputError);
  EXPECT_THROW(require_both_sides(parse_target("", classes(), data), classes(), result, 10, 0), InputError);
}

TEST(TomlEdit, AddsWhatIsMissingAndKeepsTheRest) {
  const std::string text = "# mine\nmodel.file = \"a.onnx\"  # stays\n\n[goal]\nmetric = \"f1\"\n";
  const std::string out = updated_toml(
      text, {{"goal.metric", "\"auc\"", "guess"}, {"goal.expect", "0.9", "told"}, {"classes", "[\"a\"]", "data"}}, "x");
  EXPECT_NE(out.find("# mine\nmodel.file = \"a.onnx\"  # stays"), std::string::npos) << out;
  EXPECT_NE(out.find("metric = \"f1\""), std::string::npos);
  EXPECT_EQ(out.find("auc"), std::string::npos);
  const Config read = parse_config(out, "x");
  EXPECT_EQ(read.overrides.metric, "f1");
  EXPECT_DOUBLE_EQ(read.expect, 0.9);
  EXPECT_EQ(read.classes, (std::vector<std::string>{"a"}));
  EXPECT_EQ(updated_toml(out, {{"goal.expect", "0.5", ""}}, "x"), out);  // nothing is added twice
  EXPECT_THROW(updated_toml("a = [", {{"b", "1", ""}}, "x"), InputError);
}

TEST(TomlEdit, WordsOfAnyKindComeBack) {
  for (const std::string word : {"plain", "with \"quotes\"", "back\\slash", "two\nlines", "tab\t", "ü×", "a=b[c]"}) {
    const Config read = parse_config("classes = [" + toml_string(word) + "]\n", "x");
    EXPECT_EQ(read.classes, std::vector<std::string>{word});
    const std::string key = "accept." + toml_key("weak-slice:" + word);
    const std::string text = fresh_toml({{key, "{ reason = \"known\" }", ""}}, "");
    EXPECT_EQ(parse_config(text, "x").accepted.at(0).id, "weak-slice:" + word) << text;
    EXPECT_TRUE(parse_config(trimmed_toml(text, {key}, "x"), "x").accepted.empty()) << text;
  }
}

}  // namespace
}  // namespace netmend::session
