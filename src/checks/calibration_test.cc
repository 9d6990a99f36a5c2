// Bins of confidence and the expected calibration error, against the definition computed the slow way.
#include "checks/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace netmend::checks {
namespace {

using observers::SampleRow;

SampleRow answered(double confidence, bool right) {
  SampleRow row;
  row.confidence = float(confidence), row.right = right ? SampleRow::kRight : SampleRow::kWrong;
  return row;
}

/// Guo et al. 2017: the mean over bins of |accuracy − confidence|, weighted by their sizes; a bin at a time.
double slow_ece(const std::vector<SampleRow>& rows, int bins) {
  double sum = 0, all = 0;
  for (int b = 0; b < bins; ++b) {
    double count = 0, right = 0, confidence = 0;
    for (const SampleRow& row : rows) {
      if (row.right == SampleRow::kNotJudged || !std::isfinite(row.confidence)) continue;
      const int own = std::min(bins - 1, int(std::floor(row.confidence * float(bins))));
      if (own == b) ++count, right += row.right == SampleRow::kRight, confidence += row.confidence;
    }
    if (count > 0) sum += std::abs(right - confidence);
    all += count;
  }
  return all > 0 ? sum / all : 0;
}

TEST(Calibration, AgreesWithTheDefinition) {
  for (uint64_t seed : {1, 2, 3}) {
    Random random(seed);
    std::vector<SampleRow> rows;
    for (int i = 0; i < 700; ++i) {
      const double confidence = random.uniform();
      rows.push_back(answered(confidence, random.uniform() < confidence * confidence));
      if (i % 11 == 0) rows.back().right = SampleRow::kNotJudged;
      if (i % 13 == 0) rows.back().confidence = NAN;
    }
    for (int bins : {1, 2, 15, 40}) EXPECT_NEAR(calibration(rows, bins).ece, slow_ece(rows, bins), 1e-6) << bins;
  }
}

TEST(Calibration, EveryConfidenceFallsIntoOneBinAndOneIsInTheLast) {
  const Calibration all = calibration({answered(0, true), answered(1, true), answered(0.5, false)}, 4);
  ASSERT_EQ(all.bins.size(), 4u);
  EXPECT_EQ(all.bins[0].count, 1);
  EXPECT_EQ(all.bins[2].count, 1);  // 0.5 is the lower edge of the third
  EXPECT_EQ(all.bins[3].count, 1);
  EXPECT_EQ(all.bins[0].low, 0);
  EXPECT_EQ(all.bins[3].high, 1);
  for (size_t b = 1; b < 4; ++b) EXPECT_EQ(all.bins[b].low, all.bins[b - 1].high);
}

TEST(Calibration, ConfidenceThatIsRightAsOftenAsItSaysCostsNothing) {
  std::vector<SampleRow> rows;
  for (int i = 0; i < 100; ++i) rows.push_back(answered(0.75, i < 75));
  const Calibration all = calibration(rows);
  EXPECT_NEAR(all.ece, 0, 1e-7);
  EXPECT_DOUBLE_EQ(all.accuracy, 0.75);
  EXPECT_DOUBLE_EQ(all.confidence, 0.75);
  EXPECT_EQ(all.count, 100);
}

TEST(Calibration, AlwaysSureAndAlwaysWrongIsTheWorst) {
  const Calibration all = calibration(std::vector<SampleRow>(50, answered(1, false)));
  EXPECT_DOUBLE_EQ(all.ece, 1);
  EXPECT_DOUBLE_EQ(all.accuracy, 0);
}

TEST(Calibration, OverAndUnderConfidenceOfOneBinCancelAndOfTwoBinsAddUp) {
  std::vector<SampleRow> one{answered(0.55, true), answered(0.55, false)};
  EXPECT_NEAR(calibration(one, 1).ece, 0.05, 1e-6);
  std::vector<SampleRow> two{answered(0.2, true), answered(0.9, false)};
  EXPECT_NEAR(calibration(two, 2).ece, (0.8 + 0.9) / 2, 1e-6);
  EXPECT_NEAR(calibration(two, 1).ece, 0.05, 1e-6);
}

TEST(Calibration, TheIntervalOfTheErrorBeginsAtNothingWhereConfidenceIsRight) {
  int above = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<SampleRow> rows;
    for (int i = 0; i < 500; ++i) {
      const double confidence = 0.5 + 0.5 * random.uniform();
      rows.push_back(answered(confidence, random.uniform() < confidence));
    }
    const Calibration all = calibration(rows);
    EXPECT_GT(all.ece, 0);
    above += all.ece_low > 0;
    EXPECT_NEAR(all.above + all.below, all.ece, 1e-12);
  }
  EXPECT_LE(above, 10) << "of 200";
}

TEST(Calibration, TheIntervalOfTheErrorHoldsATrueError) {
  std::vector<SampleRow> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back(answered(0.95, i % 10 < 8));
  const Calibration all = calibration(rows);
  EXPECT_NEAR(all.ece, 0.15, 1e-6);
  EXPECT_GT(all.ece_low, 0.11);
  EXPECT_LT(all.ece_high, 0.18);
  EXPECT_GT(all.above, 0.14);
  EXPECT_EQ(all.below, 0);
}

TEST(Calibration, NothingThatWasJudgedGivesNoFigures) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::vector<SampleRow>& rows :
       {std::vector<SampleRow>{}, std::vector<SampleRow>(5), {answered(NAN, true), answered(inf, false)}}) {
    const Calibration all = calibration(rows);
    EXPECT_EQ(all.count, 0);
    EXPECT_EQ(all.ece, 0);
    EXPECT_EQ(all.bins.size(), 15u);
    for (const CalibrationBin& bin : all.bins) EXPECT_EQ(bin.count, 0);
  }
}

}  // namespace
}  // namespace netmend::checks
