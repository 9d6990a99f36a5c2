#include "stats/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace netmend::stats {
namespace {

TEST(Rate, HasTheFiguresOfTheTextbook) {
  // Newcombe (1998), table I: 81 of 263 and 0 of 20 by the score method.
  EXPECT_NEAR(rate(81, 263).low, 0.2553, 5e-5);
  EXPECT_NEAR(rate(81, 263).high, 0.3662, 5e-5);
  EXPECT_NEAR(rate(0, 20).high, 0.1611, 5e-5);
  EXPECT_EQ(rate(0, 20).low, 0);
  EXPECT_EQ(rate(20, 20).high, 1);
  EXPECT_TRUE(std::isnan(rate(0, 0).value));
}

TEST(Rate, HoldsTheTruthAboutAsOftenAsPromised) {
  std::mt19937 random(1);
  for (double truth : {0.02, 0.3, 0.97}) {
    int held = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      int64_t hits = std::binomial_distribution<int64_t>(200, truth)(random);
      Estimate about = rate(hits, 200);
      held += about.low <= truth && truth <= about.high;
    }
    EXPECT_GT(held, 2000 * 0.92) << truth;
  }
}

TEST(Mean, NarrowsWithTheRootOfTheCount) {
  Estimate few = mean(50, 30, 100), many = mean(5000, 3000, 10000);
  EXPECT_DOUBLE_EQ(few.value, 0.5);
  EXPECT_NEAR((few.high - few.low) / (many.high - many.low), 10, 0.2);  // and a little for few degrees of freedom
}

TEST(Average, OfOneIsItselfAndSkipsTheUnknown) {
  Estimate one = rate(3, 7);
  std::vector<Estimate> parts = {one, rate(0, 0)};
  EXPECT_DOUBLE_EQ(average(parts).low, one.low);
  EXPECT_DOUBLE_EQ(average(parts).high, one.high);
}

TEST(NetChange, IsFixedLessBroken) {
  Estimate change = net_change(41, 9, 3000);
  EXPECT_DOUBLE_EQ(change.value, 32.0 / 3000);
  EXPECT_NEAR(change.low, 0.006, 1e-3);
  EXPECT_NEAR(change.high, 0.0153, 1e-3);
}

TEST(SignTest, IsExact) {
  EXPECT_DOUBLE_EQ(sign_test(0, 0), 1);
  EXPECT_NEAR(sign_test(5, 0), 2.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(41, 9), 5.6e-6, 1e-6);
  EXPECT_EQ(sign_test(7, 7), 1);
}

}  // namespace
}  // namespace netmend::stats
