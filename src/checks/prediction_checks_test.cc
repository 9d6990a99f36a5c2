// Checks of predictions at their limits: the same answers a little better and a little worse.
#include <gtest/gtest.h>

#include <functional>

#include "checks/predictions_for_test.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;
using observers::SampleRow;

/// So many of every class are wrong, spread over the other classes.
std::function<int64_t(int64_t, int64_t)> wrong_of_each(int64_t wrong) {
  return [wrong](int64_t c, int64_t i) { return i < wrong ? (c + 1 + i % 9) % 10 : c; };
}
/// Of class 2 so many are wrong.
std::function<int64_t(int64_t, int64_t)> wrong_of_two(int64_t wrong) {
  return [wrong](int64_t c, int64_t i) { return c == 2 && i < wrong ? (3 + i % 9) % 10 : spread_mistakes(c, i); };
}

TEST(PredictionLimits, OverFittingIsSevenPointsOfAGoodNetworkAndTenOfAPoorOne) {
  struct Case {
    int64_t train_wrong, test_wrong;
    bool told;
  };
  for (const Case& one : {Case{0, 6, false}, Case{0, 8, true}, Case{10, 19, false}, Case{10, 21, true}}) {
    Answered answers;
    answers.test = answers.part(wrong_of_each(one.test_wrong), well_calibrated);
    answers.train = answers.part(wrong_of_each(one.train_wrong), well_calibrated);
    EXPECT_EQ(raises(answers.look(), "over-fit"), one.told) << one.train_wrong << " " << one.test_wrong;
  }
}

TEST(PredictionLimits, AWeakClassIsBehindByMoreThanChanceExplains) {
  for (const auto& [wrong, told] : std::vector<std::pair<int64_t, bool>>{{8, false}, {15, false}, {20, true}}) {
    Answered answers;
    answers.test = answers.part(wrong_of_two(wrong), well_calibrated);
    EXPECT_EQ(raises(answers.look(), "weak-class:c2"), told) << wrong;
  }
}

TEST(PredictionLimits, AWeakClassIsSeriousBelowHalfOfTheMedianRecallOnly) {
  for (const auto& [wrong, level] :
       std::vector<std::pair<int64_t, Level>>{{50, Level::kMinor}, {60, Level::kSerious}}) {
    Answered answers;
    answers.test = answers.part(wrong_of_two(wrong), well_calibrated);
    EXPECT_EQ(raised(answers.look(), "weak-class:c2").level, level) << wrong;
  }
}

TEST(PredictionLimits, AClassWithFewerThanTenTestsIsNotJudged) {
  for (const auto& [size, told] : std::vector<std::pair<int64_t, bool>>{{9, false}, {10, true}}) {
    Answered answers;
    std::vector<int64_t> sizes(10, 100);
    sizes[2] = size;
    answers.test = answers.part([](int64_t c, int64_t i) { return c == 2 ? 3 + i % 2 : spread_mistakes(c, i); },
                                well_calibrated, sizes);
    // Others are called c2 now and then, so it is weak and not unheard of.
    EXPECT_EQ(raises(answers.look(), "weak-class:c2"), told) << size;
  }
}

TEST(PredictionLimits, ConfidenceIsOffByThreePointsAboveOrFiveBelow) {
  struct Case {
    int64_t wrong;
    double sure;
    const char* kind;
  };
  for (const Case& one :
       {Case{8, 0.960, "over-confident"}, Case{8, 0.945, ""}, Case{8, 0.88, ""}, Case{8, 0.86, "under-confident"},
        // Nearly always right: what counts is how much of the few mistakes it is sure of.
        Case{3, 0.9925, "over-confident"}, Case{3, 0.985, ""}}) {
    Answered answers;
    answers.test = answers.part(wrong_of_each(one.wrong), [&](const SampleRow&) { return one.sure; });
    const Results& found = answers.look();
    for (const char* kind : {"over-confident", "under-confident"})
      EXPECT_EQ(raises(found, kind), kind == std::string(one.kind)) << one.sure << " " << kind;
  }
}

TEST(PredictionLimits, TheLevelOfOverConfidenceGrowsWithTheError) {
  struct Case {
    int64_t wrong;
    double sure;
    Level level;
  };
  for (const Case& one : {Case{3, 0.9925, Level::kNote}, Case{8, 0.97, Level::kMinor}, Case{30, 0.95, Level::kSerious},
                          Case{8, 0.85, Level::kNote}, Case{8, 0.40, Level::kMinor}}) {
    Answered answers;
    answers.test = answers.part(wrong_of_each(one.wrong), [&](const SampleRow&) { return one.sure; });
    const bool over = one.sure > 1 - 0.01 * double(one.wrong);
    const Finding finding = raised(answers.look(), over ? "over-confident" : "under-confident");
    EXPECT_EQ(finding.level, one.level) << one.sure;
    EXPECT_GT(finding.numbers["ece_low"].get<double>(), 0);
  }
}

TEST(PredictionLimits, ErrorsOfConfidenceThatCancelInTheMeanAreSeen) {
  Answered answers;  // half of the predictions 95 % sure and half 55 % sure, all of them right three times in four
  answers.test = answers.part(wrong_of_each(25), [](const SampleRow& row) { return row.sample % 2 ? 0.95 : 0.55; });
  const Results& found = answers.look();
  EXPECT_TRUE(raises(found, "over-confident") || raises(found, "under-confident")) << said(found.findings);
}

/// Class 2 predicted as 3 so often, 3 as 2 so often, and ten mistakes elsewhere.
std::string told_of_pair(int64_t there, int64_t back) {
  Answered answers;
  answers.test = answers.part(
      [&](int64_t c, int64_t i) {
        if (c == 2 && i < there) return int64_t(3);
        if (c == 3 && i < back) return int64_t(2);
        return i == 99 ? (c + 4) % 10 : c;
      },
      well_calibrated);
  return raised(answers.look(), "confused-classes:c2-c3").evidence;
}

TEST(Confusions, GoBothWaysOnlyWhereTheyDo) {
  auto has = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  EXPECT_TRUE(has(told_of_pair(10, 0), "one way only"));
  EXPECT_FALSE(has(told_of_pair(10, 0), "both ways"));
  EXPECT_TRUE(has(told_of_pair(15, 2), "mostly one way"));
  EXPECT_TRUE(has(told_of_pair(10, 10), "both ways"));
  EXPECT_TRUE(has(told_of_pair(12, 5), "both ways"));
  EXPECT_FALSE(has(told_of_pair(9, 2), "way")) << "two of eleven do not tell";
  EXPECT_FALSE(has(told_of_pair(19, 5), "way")) << "neither the one nor the other";
  EXPECT_TRUE(has(told_of_pair(60, 1), "one-sided"));
  EXPECT_TRUE(has(told_of_pair(90, 90), "swapped"));
  EXPECT_TRUE(has(told_of_pair(10, 0), "10 inputs of class c2 are predicted as c3, and no inputs of class c3 as c2;"));
}

TEST(Confusions, AreExchangedOnlyWhereMostOfBothClassesIs) {
  Answered answers;  // 300 of 1,000 against 60 of 100: most of the small class, and not of the large one
  std::vector<int64_t> sizes(10, 100);
  sizes[2] = 1000;
  answers.test = answers.part(
      [&](int64_t c, int64_t i) {
        if (c == 2 && i < 300) return int64_t(3);
        if (c == 3 && i < 60) return int64_t(2);
        return i == 99 ? (c + 4) % 10 : c;
      },
      well_calibrated, sizes);
  const std::string told = raised(answers.look(), "confused-classes:c2-c3").evidence;
  EXPECT_EQ(told.find("swapped"), std::string::npos) << told;
  EXPECT_NE(told.find("More than half of class c3 is predicted as c2"), std::string::npos) << told;
}

TEST(Baseline, IsNoBetterOnlyWhereAccuracyIsNotHigher) {
  for (const auto& [right, words] : std::vector<std::pair<int64_t, const char*>>{
           {55, "is no better"}, {56, "is hardly better"}, {64, "is not clearly better"}}) {
    Answered answers;  // always predicting c0 would be right for 55 of 110 inputs
    std::vector<int64_t> sizes(10, 0);
    sizes[0] = sizes[1] = 55;
    const int64_t most = right - 30;
    answers.test = answers.part([&](int64_t c, int64_t i) { return i < (c == 0 ? 30 : most) ? c : 1 - c; },
                                [](const SampleRow&) { return 0.6; }, sizes);
    const std::string title = raised(answers.look(), "no-better-than-baseline").title;
    EXPECT_NE(title.find(words), std::string::npos) << title;
  }
}

TEST(WeakClasses, AreMistakenForWhatIsNamedAndCounted) {
  Answered answers;  // mostly right, and never most often predicted as another class
  answers.test =
      answers.part([&](int64_t c, int64_t i) { return c == 2 && i < 40 ? (c + 1 + i % 5) % 10 : c; }, well_calibrated);
  const std::string told = raised(answers.look(), "weak-class:c2").evidence;
  EXPECT_NE(told.find("It is mistaken for c3 (8), c4 (8), c5 (8) and 2 other classes."), std::string::npos) << told;
  EXPECT_EQ(told.find("Most often"), std::string::npos) << told;
}

TEST(Confusions, OfClassesOfDifferentSizesAreComparedByTheirRates) {
  Answered answers;  // 12 of 1,000 and 3 of 100 are taken for each other: the small class goes more often
  std::vector<int64_t> sizes(10, 100);
  sizes[2] = 1000;
  answers.test = answers.part(
      [&](int64_t c, int64_t i) {
        if (c == 2 && i < 12) return int64_t(3);
        if (c == 3 && i < 3) return int64_t(2);
        return i == 99 ? (c + 4) % 10 : c;
      },
      well_calibrated, sizes);
  EXPECT_EQ(raised(answers.look(), "confused-classes:c2-c3").evidence.find("one way"), std::string::npos);
}

TEST(OverFitting, OfAFewInputsIsChance) {
  Answered answers;
  answers.test = answers.part([](int64_t c, int64_t i) { return c == 0 && i == 0 ? 1 : c; }, well_calibrated,
                              std::vector<int64_t>(10, 1));
  answers.train = answers.part(wrong_of_each(0), well_calibrated);
  EXPECT_FALSE(raises(answers.look(), "over-fit")) << "one of ten tests";
}

TEST(Sentences, AreTrueOfOneOfEverything) {
  Answered answers;
  answers.test = answers.part([](int64_t c, int64_t i) { return c == 0 && i == 0 ? 1 : c; }, well_calibrated);
  const Results& found = answers.look();
  for (const Passed& passed : found.passed) {
    EXPECT_EQ(passed.value.find("1 failures"), std::string::npos) << passed.value;
    EXPECT_EQ(passed.value.find("-"), std::string::npos) << passed.what << ": " << passed.value;
  }
}

TEST(PredictionLimits, ConfidenceOfFewerThanTwoHundredTestsIsSkippedAndSaidSo) {
  for (const auto& [of_each, told] : std::vector<std::pair<int64_t, bool>>{{19, false}, {20, true}}) {
    Answered answers;
    answers.test = answers.part([](int64_t c, int64_t i) { return i < 4 ? (c + 1 + i) % 10 : c; },
                                [](const SampleRow&) { return 0.99; }, std::vector<int64_t>(10, of_each));
    const Results& found = answers.look();
    EXPECT_EQ(raises(found, "over-confident"), told);
    EXPECT_EQ(std::count_if(found.skipped.begin(), found.skipped.end(),
                            [](const Skipped& one) { return one.enable == "at least 200 labelled inputs"; }),
              told ? 0 : 1);
  }
}

TEST(PredictionLimits, TheInputsShownAreTheWrongOnesOfTheLargestLossFirst) {
  Answered answers;
  answers.test = answers.part(wrong_of_two(60), well_calibrated);
  for (SampleRow& row : answers.test.rows)
    if (row.right == SampleRow::kWrong) row.loss = float(row.sample % 37);
  const std::vector<SampleRow> rows = answers.test.rows;
  const Finding finding = raised(answers.look(), "weak-class:c2");
  ASSERT_EQ(finding.inputs.size(), 12u);
  for (size_t i = 0; i < finding.inputs.size(); ++i) {
    const SampleRow& row = rows[size_t(finding.inputs[i].sample)];
    EXPECT_EQ(row.label, 2);
    EXPECT_EQ(row.right, SampleRow::kWrong);
    if (i > 0) {
      EXPECT_LE(row.loss, rows[size_t(finding.inputs[i - 1].sample)].loss);
    }
  }
}

TEST(PredictionLimits, TheMajorityClassIsABaselineFromThirtyTestsOn) {
  for (const auto& [size, told] : std::vector<std::pair<int64_t, bool>>{{14, false}, {15, true}}) {
    Answered answers;
    std::vector<int64_t> sizes(10, 0);
    sizes[0] = sizes[1] = size;
    answers.test = answers.part([](int64_t, int64_t) { return int64_t(0); }, well_calibrated, sizes);
    EXPECT_EQ(raises(answers.look(), "no-better-than-baseline"), told) << size;
  }
}

TEST(PredictionLimits, TestsOfOneClassSayNothingAboutClasses) {
  Answered answers;
  std::vector<int64_t> sizes(10, 0);
  sizes[4] = 300;
  answers.test = answers.part([](int64_t, int64_t i) { return i < 150 ? 4 : 5; }, well_calibrated, sizes);
  const Results& found = answers.look();
  EXPECT_TRUE(found.findings.empty()) << said(found.findings);
  ASSERT_FALSE(found.skipped.empty());
  EXPECT_EQ(found.skipped[0].enable, "inputs of at least two classes");
}

TEST(PredictionLimits, NoTestsAtAllRaiseNothing) {
  Answered answers;
  answers.test = answers.part(spread_mistakes, well_calibrated, std::vector<int64_t>(10, 0));
  answers.test.result.accuracy = NAN;
  EXPECT_TRUE(answers.look().findings.empty());
}

/// Labels −3 and 3 in turn.
Results look_at_numbers(const std::function<double(double label, int64_t i)>& answer, int64_t count = 500) {
  Answered all;
  all.settings.task = observers::Task::kNumber, all.settings.metric = "mae", all.settings.classes.clear();
  all.test.name = "test";
  for (int64_t i = 0; i < count; ++i) {
    SampleRow row;
    row.sample = i, row.label = i % 2 ? 3 : -3, row.predicted = answer(row.label, i);
    all.test.rows.push_back(row);
  }
  all.test.result.samples = count;
  return all.look();
}

TEST(NumberLimits, ABiasIsATenthOfTheLabelsDeviation) {
  for (double sign : {1.0, -1.0}) {
    EXPECT_FALSE(raises(look_at_numbers([&](double t, int64_t) { return t + sign * 0.29; }), "biased-numbers"));
    const Finding finding =
        raised(look_at_numbers([&](double t, int64_t) { return t + sign * 0.31; }), "biased-numbers");
    EXPECT_NE(finding.title.find(sign > 0 ? "too high" : "too low"), std::string::npos) << finding.title;
    EXPECT_NEAR(finding.value, 0.31 / 3, 1e-3);
  }
}

TEST(NumberLimits, ALimitHoldsTwoInAHundredPredictionsWithLabelsBeyond) {
  auto stops = [](int64_t many) {
    return [many](double t, int64_t i) { return i % 2 && i < 2 * many ? 2.5 : t * 0.7 + 0.001 * double(i % 17); };
  };
  EXPECT_FALSE(raises(look_at_numbers(stops(9)), "clipped-numbers:above"));
  EXPECT_TRUE(raises(look_at_numbers(stops(10)), "clipped-numbers:above"));
  // Predictions that stop where no label lies beyond are right to stop.
  EXPECT_FALSE(raises(look_at_numbers([](double t, int64_t) { return t; }), "clipped-numbers"));
}

TEST(NumberLimits, ConstantIsAFiftiethOfWhatLabelsVaryAndOtherChecksThenKeepQuiet) {
  EXPECT_FALSE(raises(look_at_numbers([](double t, int64_t) { return 0.021 * t; }), "constant-predictions"));
  const Results found = look_at_numbers([](double t, int64_t) { return 40 + 0.019 * t; });
  EXPECT_TRUE(raises(found, "constant-predictions"));
  EXPECT_FALSE(raises(found, "biased-numbers") || raises(found, "clipped-numbers")) << said(found.findings);
}

TEST(NumberLimits, PredictionsThatAreNoNumbersAreLeftOutOfTheOthers) {
  const Results found = look_at_numbers([](double t, int64_t i) { return i % 5 == 0 ? NAN : t; });
  EXPECT_FALSE(raises(found, "biased-numbers") || raises(found, "constant-predictions")) << said(found.findings);
  const Results few = look_at_numbers([](double t, int64_t) { return t + 5; }, 29);
  EXPECT_FALSE(raises(few, "biased-numbers"));
  EXPECT_TRUE(std::any_of(few.skipped.begin(), few.skipped.end(),
                          [](const Skipped& one) { return one.what == "bias of predicted numbers"; }));
}

}  // namespace
}  // namespace netmend::checks
