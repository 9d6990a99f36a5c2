// Gaps between groups and weak slices: against rates counted plainly, and near misses.
#include <gtest/gtest.h>

#include "checks/data_for_test.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

/// Two classes and a group `sex`; every so many positives of women are missed, others one in sixteen.
struct Grouped {
  Sound sound{3200, 100};
  explicit Grouped(int64_t missed_of_sixteen, int64_t women_of_ten = 5) {
    sound.train = false;
    sound.classes = sound.settings.classes = {"no", "yes"}, sound.settings.outputs = 2;
    sound.wrong.clear(), sound.group_names = {"sex"};
    int64_t women = 0, others = 0;
    for (int64_t i = 0; i < 3200; ++i) {
      const bool woman = i * 7 % 10 < women_of_ten, positive = i / 10 % 2 == 1;
      sound.groups.push_back({woman ? "F" : "M"});
      sound.y[0][i] = int64_t(positive);
      const bool wrong = woman && positive ? women++ % 16 < missed_of_sixteen : others++ % 16 < 1;
      if (wrong) sound.wrong.push_back(i);
    }
  }
  Results check() const {
    Observed seen = sound.observed();
    Results found;
    run_rows(seen, found, {"groups"});
    return found;
  }
  /// The share of positives of a group that is predicted so, counted one by one.
  double true_positive_rate(const std::string& sex) const {
    int64_t all = 0, right = 0;
    for (int64_t i = 0; i < 3200; ++i)
      if (sound.groups[size_t(i)][0] == sex && sound.y[0][i].item<int64_t>() == 1)
        ++all, right += std::find(sound.wrong.begin(), sound.wrong.end(), i) == sound.wrong.end();
    return double(right) / double(all);
  }
};

TEST(GroupGaps, AreTheDifferenceOfTheRates) {
  const Grouped grouped(4);
  const Finding finding = raised(grouped.check(), "group-gap:sex=F", Level::kSerious);
  EXPECT_EQ(finding.numbers["rate"], "true positive rate");
  EXPECT_NEAR(finding.numbers["here"].get<double>(), grouped.true_positive_rate("F"), 1e-9);
  EXPECT_NEAR(finding.numbers["rest"].get<double>(), grouped.true_positive_rate("M"), 1e-9);
  EXPECT_NEAR(finding.effect.local, grouped.true_positive_rate("M") - grouped.true_positive_rate("F"), 1e-9);
}

TEST(GroupGaps, ThatChanceExplainsAreNotTold) {
  EXPECT_TRUE(Grouped(1).check().findings.empty());
  EXPECT_EQ(Grouped(1).check().passed[0].what, "gaps between groups");
}

TEST(GroupGaps, OfAGroupThatIsNearlyEverybodyAreThoseOfTheOthers) {
  EXPECT_TRUE(raises(Grouped(6, 7).check(), "group-gap:sex=F"));
  EXPECT_FALSE(raises(Grouped(6, 8).check(), "group-gap:sex=F"));
}

TEST(GroupGaps, OfGroupsOfFewerThanFiftyInputsAreSkippedAndCounted) {
  Grouped grouped(4);
  for (int64_t i = 0; i < 49; ++i) grouped.sound.groups[size_t(i)] = {"X"};
  const Results found = grouped.check();
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].what, "1 group too small to judge");
  grouped.sound.groups[49] = {"X"};
  EXPECT_TRUE(grouped.check().skipped.empty());
}

TEST(GroupGaps, OfMoreClassesAreThoseOfAccuracy) {
  Grouped grouped(4);  // a quarter of the women's positives, a sixteenth of all others
  grouped.sound.classes = grouped.sound.settings.classes = {"no", "yes", "maybe"};
  const Finding finding = raised(grouped.check(), "group-gap:sex=F", Level::kSerious);
  EXPECT_EQ(finding.numbers["rate"], "accuracy");
  EXPECT_LT(finding.numbers["here"].get<double>(), finding.numbers["rest"].get<double>() - 0.05);
  EXPECT_NEAR(finding.effect.local, finding.numbers["rest"].get<double>() - finding.numbers["here"].get<double>(),
              1e-9);
  EXPECT_NE(finding.title.find("accuracy is lower"), std::string::npos) << finding.title;
  EXPECT_EQ(finding.next[0].text().find("--threshold"), std::string::npos) << "a threshold is one of two classes";
  Grouped fair(1);
  fair.sound.classes = fair.sound.settings.classes = {"no", "yes", "maybe"};
  EXPECT_TRUE(fair.check().findings.empty());
}

/// A table whose column decides how often predictions are wrong.
Results weak_where(double threshold, double rate_below, double rate_above) {
  Sound sound = Sound::table(3);
  sound.train = false, sound.wrong.clear();
  Random random(5);
  for (int64_t i = 0; i < 900; ++i)
    if (random.uniform() < (sound.x[0][i][0].item<float>() < threshold ? rate_below : rate_above))
      sound.wrong.push_back(i);
  Observed seen = sound.observed();
  Results found;
  run_rows(seen, found, {"slices"});
  for (const slices::Slice& slice : found.slices)
    for (size_t row : slice.rows) EXPECT_LT(sound.x[0][int64_t(row)][0].item<float>(), threshold + 1.0);
  return found;
}

TEST(WeakSlices, OfANumberAreRulesThatHoldThere) {
  const Results found = weak_where(-0.5, 0.4, 0.03);
  ASSERT_FALSE(found.findings.empty());
  const Finding& finding = found.findings[0];
  EXPECT_EQ(finding.kind, "weak-slice");
  EXPECT_NE(finding.numbers["rule"].get<std::string>().find("age"), std::string::npos) << finding.numbers.dump();
  EXPECT_GT(finding.numbers["behind"].get<double>(), 0.2);
  EXPECT_LT(finding.numbers["p"].get<double>(), 0.01);
  EXPECT_LT(finding.numbers["judged_on"].get<int64_t>(), finding.numbers["inputs"].get<int64_t>())
      << "judged on inputs that the rule was not searched on";
}

TEST(WeakSlices, NameTheNumberOfInputsThatTheFigureIsOf) {
  const Finding finding = weak_where(-0.5, 0.4, 0.03).findings.at(0);
  const auto judged = finding.numbers["judged_on"].get<int64_t>(), all = finding.numbers["inputs"].get<int64_t>();
  EXPECT_NE(finding.brief.find(fmt::format("on {} held-out inputs", judged)), std::string::npos) << finding.brief;
  EXPECT_EQ(finding.brief.find(fmt::format("on {} ", all)), std::string::npos) << finding.brief;
  EXPECT_NE(finding.evidence.find(fmt::format("holds for {} inputs; the figures are for the {}", all, judged)),
            std::string::npos)
      << finding.evidence;
  EXPECT_EQ(finding.evidence.find("p = 0"), std::string::npos) << finding.evidence;
}

/// Two cameras, of which one makes darker images, with more errors and lower confidence there.
Results two_cameras(bool named) {
  Sound sound(3000, 100);
  sound.train = false, sound.wrong.clear();
  if (named) sound.group_names = {"camera"};
  Random random(3);
  for (int64_t i = 0; i < 3000; ++i) {
    const bool dark = i % 4 == 0;
    if (dark) sound.x[0][i] *= 0.4;
    if (named) sound.groups.push_back({dark ? "B" : "A"});
    const bool wrong = random.uniform() < (dark ? 0.2 : 0.05);
    if (wrong) sound.wrong.push_back(i);
    sound.confidence.push_back(float(dark ? 0.6 + 0.1 * random.uniform() : 0.9 + 0.1 * random.uniform()));
  }
  Observed seen = sound.observed();
  Results found;
  run_rows(seen, found, {"groups", "slices"});
  return found;
}

TEST(WeakSlices, LowerConfidenceUnderAShiftIsNoExcuse) {
  const Results named = two_cameras(true), unnamed = two_cameras(false);
  EXPECT_GE(int(raised(named, "group-gap:camera=B", Level::kSerious).level), int(Level::kSerious));
  const Finding dark = unnamed.findings.at(0);
  EXPECT_EQ(dark.kind, "weak-slice") << said(unnamed.findings);
  EXPECT_GT(dark.numbers["explained_by_confidence"].get<double>(), 0.6);
  EXPECT_EQ(dark.level, Level::kSerious) << dark.evidence;
}

TEST(WeakSlices, AreNotFoundWhereMistakesAreSpreadEvenly) {
  const Results found = weak_where(-0.5, 0.1, 0.1);
  EXPECT_TRUE(found.findings.empty()) << said(found.findings);
  EXPECT_EQ(found.passed[0].what, "weak slices");
}

TEST(WeakSlices, OfNothingButRightOrNothingButWrongPredictionsAreNone) {
  EXPECT_TRUE(weak_where(-0.5, 0, 0).findings.empty());
  EXPECT_TRUE(weak_where(-0.5, 1, 1).findings.empty());
}

/// A camera whose images are darker is told although predictions still hold, where confidence falls.
TEST(GroupGaps, ThatLookDifferentAndLowerConfidenceAreTold) {
  for (const bool less_confident : {true, false}) {
    Sound sound;
    sound.group_names = {"camera"};
    for (int64_t i = 0; i < 900; ++i) {
      const bool dark = i % 10 == 0;
      sound.groups.push_back({dark ? "C" : "A"});
      sound.confidence.push_back(dark && less_confident ? 0.4f : 0.9f);
      if (dark) sound.x[0][i] *= 0.2;
    }
    sound.wrong.clear();
    Observed seen = sound.observed();
    Results found;
    run_rows(seen, found, {"groups"});
    if (!less_confident) {
      EXPECT_FALSE(raises(found, "group-gap"));
      continue;
    }
    const Finding& told = raised(found, "group-gap:camera=C", Level::kSerious);
    EXPECT_NE(told.evidence.find("the median brightness is"), std::string::npos) << told.evidence;
    EXPECT_NE(told.evidence.find("Mean confidence is 40.0 % there and 90.0 % elsewhere"), std::string::npos)
        << told.evidence;
  }
}

}  // namespace
}  // namespace netmend::checks
