#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"
#include "findings/finding.h"
#include "findings/kinds.h"
#include "findings/merge.h"

namespace netmend::findings {
namespace {

Finding found(const std::string& kind, const std::string& where, Effect effect = {}) {
  return make(kind, where, {{"case", Shell::of("m.onnx --data d")}}, effect, Certainty::kConfirmed, "brief",
              "Evidence.");
}

TEST(Kinds, AreManyAndComplete) {
  std::set<std::string_view> names;
  for (const Kind& kind : kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " has two rows";
    for (std::string_view text :
         {kind.title, kind.fault, kind.meaning, kind.cause, kind.confirm, kind.repair, kind.next, kind.example})
      EXPECT_FALSE(text.empty()) << kind.name;
    EXPECT_EQ(kind.title.back(), '.') << kind.name;
    EXPECT_EQ(kind.meaning.back(), '.') << kind.name;
    const std::string_view last = kind.example.substr(kind.example.rfind('\n') + 1);
    const bool trained = kind.needs & kRecord;
    EXPECT_TRUE(trained ? last.starts_with("netmend watch ") || last.starts_with("netmend lint ")
                        : last.starts_with("netmend check "))
        << kind.name << " is not raised by `" << last << "`";
  }
  EXPECT_GE(names.size(), 64u);
}

TEST(Kinds, AreFoundByNameAndById) {
  EXPECT_EQ(find_kind("confused-classes").name, "confused-classes");
  EXPECT_EQ(find_kind("confused-classes:cat-dog").name, "confused-classes");
  EXPECT_THROW(find_kind("confused-clases"), InputError);
}

TEST(Merge, UnitsThatAreDamagedTogetherAreRepairedTogether) {
  auto unit = [](const std::string& name, double gain) {
    return make("suspicious-unit", name, {{"case", Shell::of("m.onnx --data d")}, {"unit", name}}, {gain, 0},
                Certainty::kConfirmed, "brief", "Evidence.");
  };
  const std::vector<Finding> both = merge_related({unit("conv2/11", 0.3), unit("my conv/2", 0.05)});
  ASSERT_EQ(both.size(), 2u);
  for (const Finding& one : both) {
    EXPECT_EQ(one.next[0].text(), "netmend repair m.onnx --data d --unit 'conv2/11,my conv/2' -o fixed.onnx");
    EXPECT_EQ(one.next[1].text(), "netmend locate m.onnx --data d");
  }
  const std::vector<Finding> one = merge_related({unit("conv2/11", 0.3), unit("conv2/2", 0)});  // the other is a note
  for (const Finding& own : one)
    EXPECT_EQ(own.next[0].text(), "netmend repair m.onnx --data d --unit " + own.where + " -o fixed.onnx");
}

TEST(Kinds, TrainingNeedsDataToTrainOn) {
  EXPECT_EQ(found("under-trained", "").next[0].text(),
            "netmend train --train SPEC --epochs 3 --rate 1e-4 -o trained.onnx");
}

TEST(Merge, CausesTakeInWhatFollowsFromThem) {
  Finding missing = found("missing-values", "test", {0.02, 0}), broken = found("non-finite-predictions", "", {0.02, 0});
  missing.numbers = {{"inputs", 60}}, broken.numbers = {{"inputs", 60}};
  EXPECT_EQ(merge_related({broken, missing}).size(), 1u);
  broken.numbers = {{"inputs", 61}};  // one that no missing value explains
  EXPECT_EQ(merge_related({broken, missing}).size(), 2u);

  Finding copies = found("duplicate-units", "conv1"), unit = found("suspicious-unit", "conv1/2", {0.05, 0});
  copies.numbers["units"] = {"conv1/1", "conv1/2"};
  auto merged = merge_related({unit, copies});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].id(), "duplicate-units:conv1");
  EXPECT_EQ(merged[0].level, Level::kSerious);
  copies.numbers["units"] = {"conv1/1", "conv1/7"};  // the unit is none of them
  merged = merge_related({unit, copies});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].id(), "suspicious-unit:conv1/2");

  Finding drift = found("drift", "brightness", {0.02, 0}), group = found("group-gap", "camera=B", {0.02, 0.1});
  EXPECT_EQ(merge_related({drift, group}).size(), 2u);
  drift.numbers = {{"group", "camera=B"}};
  EXPECT_EQ(merge_related({drift, group}).size(), 1u);
}

/// Tests that differ from training data fail for that, where training data is predicted much better.
TEST(Merge, DriftExplainsWhatFailsOnTestsAlone) {
  for (const char* symptom : {"weak-slice", "weak-class", "confused-classes", "no-better-than-baseline"}) {
    Finding drift = found("drift", "all columns", {0.3, 0}), one = found(symptom, "x", {0.2, 0.2});
    drift.numbers = {{"gap", 0.3}};
    EXPECT_EQ(merge_related({one, drift}).size(), 1u) << symptom;
    drift.numbers = {{"gap", 0.05}};  // training data is predicted as badly
    EXPECT_EQ(merge_related({one, drift}).size(), 2u) << symptom;
  }
}

TEST(Merge, LabelsThatAPoorJudgeDoubtsExplainNothing) {
  Finding labels = found("mislabelled", "test"), pair = found("confused-classes", "cat-dog", {0.05, 0.2});
  labels.numbers["pairs"]["cat-dog"] = 50;
  pair.numbers = {{"a_as_b", 50}, {"b_as_a", 10}};
  labels.level = Level::kMinor;
  EXPECT_EQ(merge_related({labels, pair}).size(), 1u);
  labels.level = Level::kNote;
  EXPECT_EQ(merge_related({labels, pair}).size(), 2u);
}

/// Later parts of a network make up for earlier ones, the final biases above all: what leaves the lower loss explains
/// it.
TEST(Merge, AnEarlierPartExplainsWhatLaterOnesMakeUpFor) {
  Finding unit = found("suspicious-unit", "conv1/2", {0.35, 0}), biases = found("shifted-biases", "", {0.4, 0});
  EXPECT_EQ(merge_related({biases, unit}).size(), 2u);
  unit.numbers["loss"] = 0.1, biases.numbers["loss"] = 0.2;
  EXPECT_EQ(merge_related({biases, unit}).size(), 1u);
  unit.numbers["loss"] = 0.3;  // the biases do better in every way
  EXPECT_EQ(merge_related({biases, unit}).size(), 2u);
  unit.numbers["loss"] = 0.1, unit.effect.gain = 0.3;  // far from what the biases gain
  EXPECT_EQ(merge_related({biases, unit}).size(), 2u);
}

TEST(Merge, OtherSharesOfClassesExplainWhatTheBiasesGain) {
  Finding shift = found("class-shift", "train-test"), unit = found("suspicious-unit", "conv1/2", {0.05, 0});
  shift.level = Level::kMinor;
  unit.numbers["biases_gain"] = 0.04;
  const auto merged = merge_related({unit, shift});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].id(), "class-shift:train-test");
  EXPECT_EQ(merged[0].level, Level::kSerious);
  unit.numbers["biases_gain"] = 0.02;
  EXPECT_EQ(merge_related({unit, shift}).size(), 2u);
  unit.numbers["biases_gain"] = 0.04, shift.level = Level::kNote;
  EXPECT_EQ(merge_related({unit, shift}).size(), 2u);
}

TEST(Merge, ManyRepeatedUnitsAreNotLeftUntrained) {
  Finding copies = found("duplicate-units", "conv1"), chance = found("no-better-than-baseline", "", {0.5, 0});
  copies.value = 0.4;
  EXPECT_EQ(merge_related({chance, copies}).size(), 1u);
  copies.value = 0.2;
  EXPECT_EQ(merge_related({chance, copies}).size(), 2u);
}

TEST(Rank, CausesStandBeforeSymptomsOfTheSameLevel) {
  const auto ranked =
      rank({found("confused-classes", "cat-dog", {0.2, 0.2}), found("suspicious-unit", "a/1", {0.02, 0})});
  EXPECT_EQ(ranked[0].kind, "suspicious-unit");
}

TEST(Levels, FollowFromTheEffect) {
  EXPECT_EQ(level_of(Rule::kEffect, {0.011, 0}), Level::kSerious);
  EXPECT_EQ(level_of(Rule::kEffect, {0, 0.06}), Level::kSerious);
  EXPECT_EQ(level_of(Rule::kEffect, {0.003, 0}), Level::kMinor);
  EXPECT_EQ(level_of(Rule::kEffect, {0.001, 0.01}), Level::kNote);
  EXPECT_EQ(level_of(Rule::kMinor, {0.5, 0.5}), Level::kMinor);
  EXPECT_EQ(level_of(Rule::kBlocker, {}), Level::kBlocker);
  EXPECT_THROW(parse_level("grave"), InputError);
}

TEST(Words, FillTitlesAndQuoteCommands) {
  Finding one = make("confused-classes", "a-b",
                     {{"case", Shell::of("m.onnx --data d")}, {"a", "T-shirt; rm -rf"}, {"b", "Ätsch"}}, {},
                     Certainty::kConfirmed, "", "");
  EXPECT_EQ(one.title, "T-shirt; rm -rf and Ätsch are often confused.");
  EXPECT_EQ(one.next[0], "netmend failures m.onnx --data d --on confusion='T-shirt; rm -rf':'Ätsch'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("mnist:test,scale=1/255"), "mnist:test,scale=1/255");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Words, OfAnyBytesStayWordsInTheCommandsOfAllKinds) {
  for (const char* hostile :
       {"$(touch x)", "`id`", "a'; id; '", "a\nb", "\x1b[31m", "caf\xe9", "-x y", "*", "\\", ""}) {
    Words words{{"case", Shell::of("{} --data {}", hostile, hostile)}};
    for (const char* name : {"a", "b", "model", "data", "train", "test", "class", "layer", "unit", "column",
                             "reference", "method", "run", "program", "split", "spec", "rule", "group", "what"})
      words[name] = hostile;
    for (const Kind& kind : kinds())
      for (const Shell& command : make(std::string(kind.name), "", words, {}, Certainty::kLikely, "", "").next)
        EXPECT_EQ(ShellPlace::read(command.text()), command) << kind.name;
  }
}

TEST(Words, LeaveNothingWhereTheConfigurationNamesAll) {
  Finding one = make("over-confident", "", {{"case", Shell()}}, {}, Certainty::kConfirmed, "", "");
  EXPECT_EQ(one.next[1], "netmend eval");
}

TEST(Ranking, PutsLevelBeforeGainAndGainBeforeNames) {
  std::vector<Finding> ranked = rank({found("over-confident", ""), found("weak-class", "x", {0.02, 0}),
                                      found("non-finite-weights", "l"), found("weak-class", "y", {0.03, 0})});
  std::vector<std::string> ids;
  for (const Finding& one : ranked) ids.push_back(one.id());
  EXPECT_EQ(ids, (std::vector<std::string>{"non-finite-weights:l", "weak-class:y", "weak-class:x", "over-confident"}));
}

TEST(Merging, TakesEffectsIntoTheirCause) {
  std::vector<Finding> merged =
      merge_related({found("weak-class", "cat", {0.004, 0}), found("confused-classes", "cat-dog", {0.002, 0}),
                     found("failure-cluster", "dog-as-cat"), found("weak-class", "ship", {0.004, 0}),
                     found("suspicious-unit", "conv1/7", {0.05, 0}), found("extreme-weights", "conv1"),
                     found("extreme-weights", "conv2")});
  std::vector<std::string> ids;
  for (const Finding& one : merged) ids.push_back(one.id());
  EXPECT_EQ(ids, (std::vector<std::string>{"confused-classes:cat-dog", "weak-class:ship", "suspicious-unit:conv1/7",
                                           "extreme-weights:conv2"}));
  EXPECT_EQ(merged[0].related, (std::vector<std::string>{"failure-cluster:dog-as-cat", "weak-class:cat"}));
  EXPECT_EQ(merged[0].effect.gain, 0.004);
}

TEST(Findings, SurviveJson) {
  Finding one = found("weak-class", "cat", {0.02, 0.1});
  one.inputs = {{"test", 7}}, one.related = {"over-confident"}, one.numbers = {{"recall", 0.5}};
  auto read = [](const Json& json) { return finding_from_json(JsonDocument(json.dump(), "findings.json").top()); };
  Finding back = read(to_json(one));
  EXPECT_EQ(to_json(back), to_json(one));
  Json broken = to_json(one);
  broken.erase("level");
  EXPECT_THROW(read(broken), InputError);
  const Json whole = to_json(one);
  for (const auto& [key, value] : whole.items())
    for (const Json& other : {Json(nullptr), Json(Json::array({Json::object()})), Json("x"), Json(7)}) {
      broken = to_json(one);
      if (broken[key].type() == other.type() || broken[key].is_number() == other.is_number()) continue;
      if (key == "id" || key == "meaning" || key == "fault" || key == "numbers") continue;  // not read, or anything
      broken[key] = other;
      EXPECT_THROW(read(broken), InputError) << key << " = " << other.dump();
    }
}

}  // namespace
}  // namespace netmend::findings
