
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "checks/data_for_test.h"
#include "findings/kind_parts.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

const Finding* find(const Results& found, const std::string& id) { return checks::find(found.findings, id); }
std::string said(const Results& found) { return checks::said(found.findings); }

/// Everything sound is quiet; so each kind has a case in which it must not be raised.
TEST(DataChecks, SoundDataIsQuiet) {
  for (uint64_t seed : {1, 2, 3, 4}) {
    for (const Sound& sound : {Sound(900, 1500, seed), Sound::table(seed), Sound::text(seed)}) {
      Results found = sound.check(true);
      EXPECT_TRUE(found.findings.empty()) << said(found);
      EXPECT_GE(found.passed.size(), 8u);
    }
  }
}

TEST(DataChecks, EveryKindIsTold) {
  for (const findings::Kind& kind : findings::data_kinds())
    for (std::string_view text :
         {kind.title, kind.fault, kind.meaning, kind.cause, kind.confirm, kind.repair, kind.next, kind.example})
      EXPECT_FALSE(text.empty()) << kind.name;
}

TEST(DataChecks, RareClasses) {
  Sound sound;
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.y[part].size(0); ++i) sound.y[part][i] = i % 30 == 0 ? 2 : i % 2;
  raised(sound.check(), "imbalance:train");
  for (int64_t i = 0; i < 900; i += 30) sound.wrong.push_back(i);  // and they are predicted badly
  raised(sound.check(), "imbalance:train", Level::kSerious);
  sound.train = false;
  raised(sound.check(), "imbalance:test");
}

TEST(DataChecks, ClassesThatAreNotThere) {
  Sound sound;
  for (int64_t i = 0; i < sound.y[1].size(0); ++i) sound.y[1][i] = i % 2;
  sound.wrong.clear();
  for (int64_t i = 0; i < 900; ++i)
    if (sound.y[0][i].item<int64_t>() == 2) sound.wrong.push_back(i);
  raised(sound.check(), "absent-class:owl", Level::kSerious);
  Sound untested;
  for (int64_t i = 0; i < untested.y[0].size(0); ++i) untested.y[0][i] = i % 2;
  EXPECT_EQ(raised(untested.check(), "absent-class:owl").level, Level::kSerious) << "it was taught and is not tested";
}

TEST(DataChecks, OtherSharesOfClasses) {
  Sound sound;
  Random random(3);
  for (int64_t i = 0; i < sound.y[0].size(0); ++i) sound.y[0][i] = random.uniform() < 0.6 ? 0 : random.below(2) ? 1 : 2;
  raised(sound.check(), "class-shift:train-test");
}

TEST(DataChecks, CopiesWithin) {
  Sound sound;
  sound.wrong.clear();
  for (int64_t i = 0; i < 60; ++i)
    sound.x[0][800 + i] = sound.x[0][5], sound.y[0][800 + i] = sound.y[0][5], sound.wrong.push_back(800 + i);
  const Finding finding = raised(sound.check(), "duplicates:test", Level::kSerious);
  EXPECT_EQ(finding.numbers["same"], 60);
  EXPECT_NEAR(finding.effect.gain, 60.0 / 900, 1e-9);
  for (int64_t i = 0; i < 200; ++i) sound.x[1][i] = sound.x[1][300];
  raised(sound.check(), "duplicates:train");
}

TEST(DataChecks, EqualInputsWithOtherLabels) {
  Sound sound;
  for (int64_t i = 0; i < 40; ++i) {
    sound.x[0][2 * i] = sound.x[0][2 * i + 1];
    sound.y[0][2 * i] = 0, sound.y[0][2 * i + 1] = 1;
  }
  const Finding finding = raised(sound.check(), "conflicting-labels:test", Level::kSerious);
  EXPECT_EQ(finding.numbers["wrong_at_best"], 40);
}

TEST(DataChecks, TestsThatAreInTraining) {
  Sound sound;
  sound.wrong.clear();
  for (int64_t i = 0; i < 300; ++i) sound.x[0][i] = sound.x[1][i], sound.y[0][i] = sound.y[1][i];  // known by heart
  for (int64_t i = 0; i < 20; ++i) sound.x[0][300 + i] = sound.x[1][700 + i] * 0.7 + 0.1;          // other exposure
  for (int64_t i = 400; i < 460; ++i) sound.wrong.push_back(i);
  const Finding finding = raised(sound.check(), "split-leak:train-test", Level::kSerious);
  EXPECT_EQ(finding.numbers["same"], 300);
  EXPECT_EQ(finding.numbers["near"], 20);
  EXPECT_NEAR(finding.effect.gain, 60.0 / 580 - 60.0 / 900, 1e-9);
  EXPECT_NE(finding.evidence.find("accuracy 93.33 % with them, accuracy 89.66 % without"), std::string::npos)
      << finding.evidence;
}

TEST(DataChecks, ColumnsThatNeverChange) {
  Sound sound = Sound::table();
  sound.x[1].select(1, 1).fill_(0.5);
  raised(sound.check(), "constant-features:train", Level::kMinor);
  EXPECT_FALSE(find(sound.check(), "constant-features:test"));
  sound.x[0].select(1, 1).fill_(0.5);
  EXPECT_EQ(raised(sound.check(), "constant-features:test").level, Level::kNote);
}

TEST(DataChecks, ValuesThatAreNoNumbers) {
  Sound sound;
  sound.wrong.clear();
  for (int64_t i = 0; i < 30; ++i) sound.x[0][i][0][2][2] = NAN, sound.wrong.push_back(i);
  raised(sound.check(), "missing-values:test", Level::kSerious);
  Sound train = Sound::table();
  train.x[1][7][0] = INFINITY;
  raised(train.check(), "missing-values:train");
}

TEST(DataChecks, ValuesOfAnotherScale) {
  Sound sound;
  sound.x[0].mul_(255);
  for (int64_t i = 0; i < 400; ++i) sound.wrong.push_back(i);
  Results found = sound.check();
  raised(found, "range-shift:train-test", Level::kSerious);
  for (const Finding& finding : found.findings) EXPECT_NE(finding.kind, "drift") << "the same thing in other words";
}

TEST(DataChecks, PropertiesAndColumnsThatDrift) {
  Sound sound;
  sound.x[0].mul_(0.7);
  EXPECT_TRUE(find(sound.check(), "drift:brightness")) << said(sound.check());
  Sound table = Sound::table();
  table.x[0].select(1, 0).add_(0.6);
  const Finding finding = raised(table.check(), "drift:age (as fed)");
  EXPECT_GT(finding.value, 0.2);
  EXPECT_FALSE(find(table.check(), "drift:hours (as fed)"));
  Sound words = Sound::table();
  for (int64_t i = 0; i < 900; ++i) words.x[0][i][2] = i % 10 != 0, words.x[0][i][3] = i % 10 == 0;
  raised(words.check(), "drift:sex");
}

TEST(DataChecks, DriftOfOneCamera) {
  Sound sound;
  sound.group_names = {"camera"};
  for (int64_t i = 0; i < sound.x[0].size(0); ++i) {
    const bool other = i % 4 == 0;
    sound.groups.push_back({other ? "B" : "A"});
    if (other) sound.x[0][i] *= 0.4;
  }
  const Results found = sound.check();
  const Finding finding = raised(found, "drift:brightness");
  EXPECT_EQ(finding.numbers.value("group", std::string()), "camera=B") << finding.evidence;
  EXPECT_NE(finding.evidence.find("Without camera=B, hardly any drift is left."), std::string::npos)
      << finding.evidence;
  for (int64_t i = 0; i < sound.x[0].size(0); ++i)
    if (i % 4 != 0) sound.x[0][i] *= 0.7;  // the other one as well
  for (const Finding& one : sound.check().findings) EXPECT_FALSE(one.numbers.contains("group")) << one.evidence;
}

TEST(DataChecks, SortedTrainingData) {
  Sound sound;
  for (int64_t i = 0; i < 1500; ++i) sound.y[1][i] = i / 500;
  EXPECT_EQ(raised(sound.check(), "sorted-data:train").level, Level::kNote);
}

TEST(DataChecks, AColumnThatTellsTheLabel) {
  Sound sound = Sound::table();
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.y[part].size(0); ++i)
      sound.x[part][i][1] = sound.y[part][i].item<float>() + 0.05 * sound.x[part][i][1].item<float>();
  raised(sound.check(), "label-leak:hours (as fed)", Level::kMinor);
}

TEST(DataChecks, FewTests) {
  Sound sound(120, 1500);
  raised(sound.check(), "few-tests");
}

TEST(DataChecks, WordsThatNobodyKnows) {
  Sound sound = Sound::text();
  Random random(4);
  for (int64_t i = 0; i < 900 * 12; ++i)
    if (sound.mask[0].data_ptr<bool>()[i] && random.uniform() < 0.2) sound.x[0].data_ptr<int64_t>()[i] = 1;
  raised(sound.check(), "unknown-tokens:test", Level::kMinor);
}

TEST(DataChecks, TextsThatAreCut) {
  Sound sound = Sound::text();
  for (int64_t i = 0; i < 200; ++i)
    sound.mask[0][i].fill_(true), sound.x[0][i] = at::arange(2 + i, 14 + i), sound.wrong.push_back(i);
  raised(sound.check(), "truncated-text:test", Level::kSerious);
}

TEST(DataChecks, InputsUnlikeAllOthers) {
  Sound sound;
  for (int64_t i = 0; i < 20; ++i) sound.x[0][i].fill_(0.01 * double(i)), sound.wrong.push_back(i);
  const Finding finding = raised(sound.check(), "outlier-inputs:test", Level::kSerious);
  EXPECT_NE(finding.brief.find("20 blank"), std::string::npos) << finding.brief;
  Sound table = Sound::table();
  table.x[0][3][0] = 1000;
  raised(table.check(), "outlier-inputs:test");
}

TEST(SliceChecks, AWeakSliceIsNamedAndWhatItKnowsIsLess) {
  Sound sound = Sound::table();
  sound.wrong.clear();
  Random random(1);
  for (int64_t i = 0; i < 900; ++i)
    if (sound.x[0][i][2].item<float>() > 0.5f ? random.uniform() < 0.3 : random.uniform() < 0.03)
      sound.wrong.push_back(i);
  const Finding finding = raised(sound.check(true), "weak-slice:sex=F", Level::kSerious);
  EXPECT_FALSE(finding.inputs.empty());
  for (int64_t i = 0; i < 900; ++i) sound.confidence.push_back(sound.x[0][i][2].item<float>() > 0.5f ? 0.6f : 0.95f);
  EXPECT_LE(int(raised(sound.check(true), "weak-slice:sex=F").level), int(Level::kMinor));
}

TEST(SliceChecks, GapsBetweenGroups) {
  for (bool gap : {true, false}) {
    Sound sound(2400, 1500);
    sound.classes = {"no", "yes"}, sound.settings.classes = sound.classes, sound.settings.outputs = 2;
    Random random(8);
    for (int part : {0, 1})
      for (int64_t i = 0; i < sound.y[part].size(0); ++i) sound.y[part][i] = int64_t(random.below(2));
    sound.wrong.clear();
    sound.group_names = {"sex"};
    for (int64_t i = 0; i < 2400; ++i) {
      sound.groups.push_back({random.below(2) ? "F" : "M"});
      const bool missed = gap && sound.groups.back()[0] == "F" && sound.y[0][i].item<int64_t>() == 1;
      if (random.uniform() < (missed ? 0.25 : 0.08)) sound.wrong.push_back(i);
    }
    Results found = sound.check(true);
    if (gap) {
      const Finding finding = raised(found, "group-gap:sex=F", Level::kSerious);
      EXPECT_EQ(finding.next[0], "netmend slices model.onnx --data memory --groups sex --threshold sweep");
    } else {
      EXPECT_FALSE(find(found, "group-gap:sex=F") || find(found, "group-gap:sex=M")) << said(found);
    }
  }
}

TEST(DataChecks, WithoutPredictionsTheyWeighNothing) {
  Sound sound;
  Observed seen = sound.observed();
  seen.test->rows.clear(), seen.train->rows.clear();
  Results unrun;
  run_rows(seen, unrun, kDataRows);
  EXPECT_TRUE(unrun.findings.empty()) << said(unrun);
}

/// Arrays whose columns have no names: a row of numbers, and a series.
Sound unnamed(const std::vector<int64_t>& shape, double noise) {
  Sound sound(900, 1500, 8);
  sound.feature = {};
  sound.feature.shape = shape;
  Random random(81);
  for (int part : {0, 1}) {
    std::vector<int64_t> all = shape;
    all.insert(all.begin(), sound.y[part].size(0));
    sound.x[part] = at::empty(all, at::kFloat);
    for (int64_t i = 0; i < sound.x[part].numel(); ++i)
      sound.x[part].data_ptr<float>()[i] = float(random.normal() + (part == 0 ? noise * random.normal() : 0));
  }
  if (noise > 0)
    for (int64_t i = 0; i < 300; ++i) sound.wrong.push_back(i);
  return sound;
}

TEST(Unnamed, NoiseOnAllTestsIsDrift) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{16}, {2, 40}}) {
    const Results quiet = unnamed(shape, 0).check();
    EXPECT_FALSE(raises(quiet, "drift")) << said(quiet);
    const Results found = unnamed(shape, 1.2).check();
    const auto drift = std::find_if(found.findings.begin(), found.findings.end(),
                                    [](const Finding& one) { return one.kind == "drift"; });
    ASSERT_NE(drift, found.findings.end()) << said(found);
    EXPECT_EQ(drift->level, Level::kSerious) << drift->evidence;
    EXPECT_EQ(drift->where, shape.size() == 1 ? "all columns" : drift->where);
  }
}

TEST(Unnamed, RowsOfFewNumbersAreATable) {
  Sound sound = unnamed({16}, 0);
  for (int64_t i = 0; i < 900; ++i) sound.x[0][i][3] = sound.x[0][i][3] + 2.0;  // one column moves
  const Results found = sound.check();
  EXPECT_TRUE(raises(found, "drift:value 3")) << said(found);
}

/// A table of few different values that was standardised, and rows that show them to a few digits.
Sound shown_table(double noise) {
  Sound sound = Sound::table();
  Random random(31);
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.x[part].size(0); ++i) {
      float* row = sound.x[part].data_ptr<float>() + i * 4;
      const double age = 18 + double(random.below(30)) / 7, hours = 35 + double(random.below(9)) / 3;
      sound.shown[part].push_back(fmt::format("age={:.4g} hours={:.4g} sex={}", age, hours, row[2] > 0 ? "F" : "M"));
      const double more = part == 0 ? noise : 0;
      row[0] = float((age - 20.2) / 1.23 + more * random.normal()),
      row[1] = float((hours - 36.4) / 0.87 + more * random.normal());
    }
  return sound;
}

TEST(Tables, EqualValuesAreEqualHoweverTheirUnitsWereFound) {
  const auto found = shown_table(0).check();
  EXPECT_FALSE(raises(found, "drift:age")) << said(found);
  EXPECT_FALSE(raises(found, "drift:hours")) << said(found);
}

TEST(Tables, ColumnsWithoutUnitsInOnePartAreComparedAsTheyAreFed) {
  const auto found = shown_table(1.5).check();
  EXPECT_TRUE(raises(found, "drift:age (as fed)")) << said(found);
}

}  // namespace
}  // namespace netmend::checks
