// What got worse than in a reference, from made-up predictions of both.
#include <gtest/gtest.h>

#include "checks/predictions_for_test.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

/// Predictions of a reference and of the model for 10 × 100 inputs: so many of class c2 are broken, of class c3 fixed.
Results against_reference(int64_t broken, int64_t fixed) {
  Answered answers;
  ObservedSplit before =
                    answers.part([&](int64_t c, int64_t i) { return c == 3 && i < fixed ? 4 : c; }, well_calibrated),
                after =
                    answers.part([&](int64_t c, int64_t i) { return c == 2 && i < broken ? 4 : c; }, well_calibrated);
  Observed seen{.session = any_session(), .settings = answers.settings};
  seen.reference.emplace();
  seen.reference->name = "older.onnx";
  seen.comparison.emplace(compare::Comparison{observers::Flips(seen.settings, *seen.session.test().data)});
  for (size_t i = 0; i < after.rows.size(); ++i) {
    const observers::Change change =
        seen.comparison->flips.add(observers::before_of(seen.settings, before.rows[i]), after.rows[i]);
    if (change != observers::Change::kNone)
      seen.comparison->list.push_back({int64_t(i), change, after.rows[i].label, before.rows[i].predicted,
                                       after.rows[i].predicted, after.rows[i].confidence, before.rows[i].confidence});
  }
  seen.test = std::move(after);
  Results found;
  run_rows(seen, found, {"reference"});
  EXPECT_EQ(found.comparison["fixed"], fixed);
  EXPECT_EQ(found.comparison["broken"], broken);
  EXPECT_EQ(int64_t(found.comparison["flips"].size()), fixed + broken);
  return found;
}

TEST(References, AWorseModelHasRegressedAndItsClassIsNamed) {
  const Results found = against_reference(30, 2);
  EXPECT_NEAR(raised(found, "regressed", Level::kSerious).effect.gain, 0.028, 0.003);
  const Finding of_class = raised(found, "regressed-class:c2", Level::kSerious);
  ASSERT_EQ(of_class.inputs.size(), 12u);
  for (const findings::Shown& shown : of_class.inputs) EXPECT_EQ(shown.sample / 100, 2);
  EXPECT_FALSE(raises(found, "regressed-class:c3")) << "it got better";
}

TEST(References, AnEqualExchangeIsNotWorseAndTheClassThatPaysIsStillNamed) {
  const Results found = against_reference(30, 30);
  EXPECT_FALSE(raises(found, "regressed"));
  EXPECT_TRUE(raises(found, "regressed-class:c2"));
  EXPECT_EQ(found.passed[0].what, "no worse than older.onnx");
}

TEST(References, OfTenClassesSomeLoseByChance) {
  EXPECT_FALSE(raises(against_reference(6, 0), "regressed-class")) << "p = 0.03, of ten";
  EXPECT_TRUE(raises(against_reference(10, 0), "regressed-class:c2"));
}

TEST(References, AHandfulOfRegressionsIsChance) {
  const Results found = against_reference(3, 1);
  EXPECT_TRUE(found.findings.empty()) << said(found.findings);
  EXPECT_TRUE(against_reference(0, 0).findings.empty());
}

}  // namespace
}  // namespace netmend::checks
