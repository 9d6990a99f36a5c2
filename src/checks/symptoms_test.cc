// Which symptoms a confirmed repair takes away: those of which it removes most failures on the hold-out part.
#include "checks/symptoms.h"

#include <gtest/gtest.h>

#include "checks/checks_for_test.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using observers::SampleRow;

/// Classes cat, dog, owl; a cause, one symptom, and a hold-out part whose cats were called dogs.
struct Repaired {
  Observed seen{.session = any_session()};
  Results results;

  Repaired(const std::string& cause, Finding symptom, int64_t before, int64_t after) {
    seen.settings.classes = {"cat", "dog", "owl"};
    Finding first;
    first.kind = cause, first.where = "fc1/3";
    symptom.level = findings::Level::kSerious;
    results.findings = {std::move(symptom), first};
    repair::Outcome outcome;
    outcome.before.rows = mistaken(before), outcome.after.rows = mistaken(after);
    results.repair.repair = std::move(outcome);
  }
  /// The first `wrong` of a hundred cats are called dogs.
  static std::vector<SampleRow> mistaken(int64_t wrong) {
    std::vector<SampleRow> rows;
    for (int64_t i = 0; i < 100; ++i) {
      SampleRow row;
      row.sample = i, row.label = 0, row.predicted = i < wrong;
      row.right = i < wrong ? SampleRow::kWrong : SampleRow::kRight;
      rows.push_back(row);
    }
    return rows;
  }
  /// Whether the symptom was put down to the cause.
  bool explained() {
    const std::string id = results.findings[0].id();
    explain_symptoms(seen, results);
    const bool gone = !raises(results, id);
    for (const Finding& one : results.findings)
      if (one.where == "fc1/3") {
        EXPECT_EQ(one.related, gone ? std::vector<std::string>{id} : std::vector<std::string>{});
      }
    EXPECT_EQ(results.findings.size(), gone ? 1u : 2u);
    return gone;
  }
};

Finding symptom_of(const std::string& kind, const std::string& where) {
  Finding one;
  one.kind = kind, one.where = where;
  if (kind == "confused-classes") one.numbers = {{"a", "dog"}, {"b", "cat"}};
  return one;
}

TEST(Symptoms, OfEveryKindGoWithARepairThatRemovesThem) {
  for (const char* cause : {"suspicious-unit", "damaged-layer"}) {
    EXPECT_TRUE(Repaired(cause, symptom_of("confused-classes", "cat-dog"), 20, 0).explained());
    EXPECT_TRUE(Repaired(cause, symptom_of("weak-class", "cat"), 20, 0).explained());
    EXPECT_TRUE(Repaired(cause, symptom_of("never-predicted", "cat"), 20, 0).explained());
    EXPECT_TRUE(Repaired(cause, symptom_of("failure-cluster", "cat-as-dog"), 20, 0).explained());
  }
}

TEST(Symptoms, OfOtherClassesStay) {
  EXPECT_FALSE(Repaired("suspicious-unit", symptom_of("weak-class", "dog"), 20, 0).explained());
  EXPECT_FALSE(Repaired("suspicious-unit", symptom_of("failure-cluster", "dog-as-cat"), 20, 0).explained());
  EXPECT_FALSE(Repaired("suspicious-unit", symptom_of("weak-class", "no such class"), 20, 0).explained());
}

TEST(Symptoms, StayWhenLessThanSixTenthsOfTheirFailuresGo) {
  EXPECT_TRUE(Repaired("suspicious-unit", symptom_of("weak-class", "cat"), 20, 8).explained());
  EXPECT_FALSE(Repaired("suspicious-unit", symptom_of("weak-class", "cat"), 20, 9).explained());
}

TEST(Symptoms, WithFewerThanFiveFailuresOnTheHoldOutPartStay) {
  EXPECT_TRUE(Repaired("suspicious-unit", symptom_of("weak-class", "cat"), 5, 0).explained());
  EXPECT_FALSE(Repaired("suspicious-unit", symptom_of("weak-class", "cat"), 4, 0).explained());
}

TEST(Symptoms, WithoutACauseOrARepairNothingIsExplained) {
  EXPECT_FALSE(Repaired("under-trained", symptom_of("weak-class", "cat"), 20, 0).explained());
  Repaired none("suspicious-unit", symptom_of("weak-class", "cat"), 20, 0);
  none.results.repair.repair.reset();
  EXPECT_FALSE(none.explained());
}

TEST(Symptoms, FindingsThatAreNoSymptomsStay) {
  for (const char* kind : {"over-confident", "duplicates", "mislabelled", "drift", "user:mine/weak-class"})
    EXPECT_FALSE(Repaired("suspicious-unit", symptom_of(kind, "cat"), 20, 0).explained()) << kind;
}

/// A slice is known by its rows of the tests, and the hold-out part by samples of the whole.
TEST(Symptoms, AWeakSliceGoesWithTheFailuresOfItsOwnInputs) {
  for (const bool within : {true, false}) {
    Repaired one("suspicious-unit", symptom_of("weak-slice", "hours=low"), 20, 0);
    one.seen.test.emplace();
    one.seen.test->rows = Repaired::mistaken(20);
    slices::Slice slice;
    slice.name = "hours=low";
    for (size_t row = within ? 10 : 30; row < (within ? 30u : 50u); ++row) slice.rows.push_back(row);
    one.results.slices = {slice};
    EXPECT_EQ(one.explained(), within);
  }
}

/// Of forty inputs of a group among two hundred `inside` fail, and `outside` of the others.
struct Grouped {
  Observed seen{any_session()};
  Results results;
  Grouped(int64_t inside, int64_t outside, findings::Level level = findings::Level::kSerious) {
    seen.settings.classes = {"cat", "dog", "owl"};
    seen.test.emplace();
    Results::GroupRows group{"group-gap:camera=B", {}};
    for (int64_t i = 0; i < 200; ++i) {
      const bool in = i < 40, wrong = in ? i < inside : i - 40 < outside;
      SampleRow row;
      row.sample = i, row.label = 0, row.predicted = wrong;
      row.right = wrong ? SampleRow::kWrong : SampleRow::kRight;
      seen.test->rows.push_back(row), group.in.push_back(in);
    }
    Finding gap;
    gap.kind = "group-gap", gap.where = "camera=B", gap.level = level;
    results.findings = {symptom_of("weak-class", "cat"), gap};
    results.groups = {group};
  }
  bool explained() {
    explain_by_groups(seen, results);
    return !raises(results, "weak-class:cat");
  }
};

TEST(Symptoms, ThatLieMostlyInAGroupAreItsOwn) {
  EXPECT_TRUE(Grouped(12, 8).explained());
  EXPECT_FALSE(Grouped(11, 9).explained());
  EXPECT_FALSE(Grouped(4, 0).explained()) << "too few to say";
  EXPECT_FALSE(Grouped(12, 8, findings::Level::kMinor).explained()) << "a gap that does not matter explains nothing";
  Grouped told(12, 8);
  told.explained();
  EXPECT_NE(told.results.findings[0].evidence.find("weak-class:cat (12 of 20)"), std::string::npos);
  EXPECT_EQ(told.results.findings[0].related, std::vector<std::string>{"weak-class:cat"});
}

TEST(Symptoms, OfAClassThatIsNeverPredictedAreItsOwnButNoCamera) {
  Grouped told(12, 8);
  Finding& cause = told.results.findings[1];
  cause.kind = "never-predicted", cause.where = "owl", told.results.groups[0].finding = cause.id();
  told.results.findings.push_back(symptom_of("weak-slice", "camera=B"));
  told.results.groups.push_back({"weak-slice:camera=B", std::vector<uint8_t>(200)});
  EXPECT_TRUE(told.explained());
  EXPECT_TRUE(raises(told.results, "weak-slice:camera=B"));
}

}  // namespace
}  // namespace netmend::checks
