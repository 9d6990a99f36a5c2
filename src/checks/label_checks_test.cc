// Labels in doubt, from made-up predictions a little on either side of the limits.
#include <gtest/gtest.h>

#include "checks/checks_for_test.h"
#include "checks/label_judge.h"
#include "checks/rows.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

/// A network that is sure of itself and right, but for so many inputs whose label is another one.
Results with_doubted_labels(int64_t doubted, double accuracy = 0.95, double linear = -1) {
  Observed seen{.session = any_session()};
  seen.settings.classes = {"cat", "dog", "owl"};
  seen.test.emplace();
  seen.test->name = "test", seen.test->result.accuracy = accuracy;
  for (int64_t i = 0; i < 1000; ++i) {
    observers::TopRow row;
    row.sample = i;
    const auto sees = int32_t(i % 3), other = int32_t((i + 1) % 3), third = int32_t((i + 2) % 3);
    row.classes = {sees, other, third, -1, -1};
    row.probabilities = {0.97f - 0.0001f * float(i % 100), 0.02f, 0.01f, 0, 0};
    const bool wrong = i < doubted;
    row.label = wrong ? third : sees;
    row.given = wrong ? 0.0001f : row.probabilities[0];
    seen.test->top.push_back(row);
  }
  if (linear >= 0) seen.simple_tried = true, seen.simple = linear_model_of(linear);
  Results found;
  run_rows(seen, found, {"label-errors"});
  return found;
}

TEST(DoubtedLabels, AreLittleWorthFromANetworkThatIsOftenWrong) {
  Observed seen{.session = any_session()};
  seen.test.emplace();
  seen.test->result.accuracy = 0.616;
  EXPECT_EQ(poor_judge(seen), "The network is often wrong, so it is a poor judge of labels.");
  EXPECT_EQ(poor_judge(seen.session, 0.616), poor_judge(seen));
  seen.test->result.accuracy = 0.9, seen.simple_tried = true, seen.simple = linear_model_of(0.895);
  EXPECT_NE(poor_judge(seen).find("A linear model reaches"), std::string::npos);
  seen.simple = linear_model_of(0.8);
  EXPECT_EQ(poor_judge(seen), "");
}

TEST(DoubtedLabels, AreToldFromThreeOnAndSuggestWhatTheNetworkSees) {
  EXPECT_FALSE(raises(with_doubted_labels(2), "mislabelled"));
  const Results found = with_doubted_labels(9);
  const Finding finding = raised(found, "mislabelled:test");
  EXPECT_NEAR(finding.value, 0.009, 1e-12);
  EXPECT_EQ(finding.evidence.find("most often"), std::string::npos) << "three pairs, three times each";
  EXPECT_NE(finding.evidence.find("for example, the label is"), std::string::npos) << finding.evidence;
  ASSERT_EQ(found.label_issues.size(), 9u);
  for (const selection::LabelIssue& issue : found.label_issues) {
    EXPECT_LT(issue.sample, 9);
    EXPECT_EQ(issue.suggested, issue.sample % 3);
    EXPECT_EQ(issue.given, (issue.sample + 2) % 3);
  }
  int64_t pairs = 0;
  for (const auto& [pair, count] : finding.numbers["pairs"].items()) pairs += count.get<int64_t>();
  EXPECT_EQ(pairs, 9);
}

TEST(DoubtedLabels, OfANetworkThatIsOftenWrongAreANote) {
  EXPECT_GT(raised(with_doubted_labels(40, 0.76), "mislabelled:test").level, Level::kNote);
  const Finding poor = raised(with_doubted_labels(40, 0.74), "mislabelled:test");
  EXPECT_EQ(poor.level, Level::kNote);
  EXPECT_EQ(poor.certainty, findings::Certainty::kPossible);
}

TEST(DoubtedLabels, OfANetworkThatIsNoBetterThanALinearModelAreANote) {
  for (const auto& [linear, level] :
       std::vector<std::pair<double, Level>>{{0.70, Level::kSerious}, {0.79, Level::kNote}, {0.85, Level::kNote}}) {
    const Finding finding = raised(with_doubted_labels(40, 0.80, linear), "mislabelled:test");
    EXPECT_EQ(finding.level, level) << linear;
    EXPECT_EQ(finding.evidence.find("linear model") != std::string::npos, level == Level::kNote) << finding.evidence;
  }
  EXPECT_EQ(raised(with_doubted_labels(40, 0.96, 0.965), "mislabelled:test").level, Level::kSerious)
      << "where a linear model is nearly always right, nothing more can be asked";
}

TEST(DoubtedLabels, ThatAreFewOfTheFailuresAreMinor) {
  const Finding finding = raised(with_doubted_labels(20, 0.80), "mislabelled:test");
  EXPECT_EQ(finding.level, Level::kMinor);
  EXPECT_NE(finding.evidence.find("They are 10.0 % of the failures"), std::string::npos) << finding.evidence;
}

TEST(DoubtedLabels, OfADamagedNetworkAreANote) {
  for (const auto& [kind, level] : std::vector<std::pair<const char*, Level>>{
           {"suspicious-unit", Level::kNote}, {"damaged-layer", Level::kNote}, {"imbalance", Level::kSerious}}) {
    Results found = with_doubted_labels(40);
    findings::Finding damage;
    damage.kind = kind, damage.where = "conv1/7", damage.level = Level::kSerious;
    damage.certainty = findings::Certainty::kLikely;
    found.add(damage);
    findings::Finding confident, dead, in_place;
    confident.kind = "over-confident", confident.level = Level::kSerious;
    dead.kind = in_place.kind = "dead-units", dead.level = in_place.level = Level::kSerious;
    dead.where = "fc1", in_place.where = "conv1";
    for (const findings::Finding& one : {confident, dead, in_place}) found.add(one);
    weigh_labels(found);
    EXPECT_EQ(find(found.findings, "dead-units:fc1")->level, level) << kind;
    EXPECT_EQ(find(found.findings, "dead-units:conv1")->level, Level::kSerious) << kind;  // the damage may be this
    EXPECT_EQ(find(found.findings, "mislabelled:test")->level, level) << kind;
    EXPECT_EQ(find(found.findings, "over-confident")->level, level == Level::kNote ? Level::kMinor : Level::kSerious);
  }
}

TEST(DoubtedLabels, OfTestsUnlikeTrainingAreANote) {
  for (const auto& [level, left] : {std::pair{Level::kSerious, Level::kNote}, {Level::kMinor, Level::kSerious}}) {
    Results found = with_doubted_labels(40);
    findings::Finding drift;
    drift.kind = "drift", drift.where = "brightness", drift.level = level;
    found.add(drift);
    weigh_labels(found);
    EXPECT_EQ(find(found.findings, "mislabelled:test")->level, left);
  }
}

TEST(DoubtedLabels, WeighLessWhatIsCountedByThem) {
  for (const auto& [doubted, level] :
       std::vector<std::pair<int64_t, Level>>{{40, Level::kMinor}, {2, Level::kSerious}}) {
    Results found = with_doubted_labels(doubted);
    for (const char* where : {"brightness=low", "camera=B"}) {
      Finding slice;
      slice.kind = "weak-slice", slice.where = where, slice.level = Level::kSerious;
      found.add(slice);
    }
    found.groups.push_back({"weak-slice:camera=B", {}});
    weigh_labels(found);
    EXPECT_EQ(find(found.findings, "weak-slice:brightness=low")->level, level);
    EXPECT_EQ(find(found.findings, "weak-slice:camera=B")->level, Level::kSerious);
  }
}

}  // namespace
}  // namespace netmend::checks
