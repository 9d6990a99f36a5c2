#include "stats/distributions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stats/moments.h"

namespace netmend::stats {
namespace {

/// Values of printed tables.
TEST(Distributions, AgreeWithTables) {
  EXPECT_NEAR(normal_tail(1.959964), 0.025, 1e-6);
  EXPECT_NEAR(t_quantile_95(10), 2.228139, 1e-5);
  EXPECT_NEAR(t_quantile_95(1e7), 1.959964, 1e-5);
  EXPECT_NEAR(t_tail(2.228139, 10), 0.025, 1e-6);
  EXPECT_NEAR(chi_squared_tail(3.841459, 1), 0.05, 1e-6);
  EXPECT_NEAR(chi_squared_tail(18.307038, 10), 0.05, 1e-6);
  EXPECT_NEAR(f_tail(4.964603, 1, 10), 0.05, 1e-6);
  EXPECT_NEAR(binomial_cdf(2, 10, 0.5), 56.0 / 1024, 1e-12);
}

TEST(Distributions, HaveAnAnswerForEveryNumber) {
  EXPECT_EQ(chi_squared_tail(-1, 3), 1);
  EXPECT_EQ(chi_squared_tail(5, 0), 1);
  EXPECT_EQ(chi_squared_tail(INFINITY, 2), 0);
  EXPECT_EQ(t_tail(NAN, 3), 1);
  EXPECT_EQ(t_tail(INFINITY, 3), 0);
  EXPECT_EQ(normal_tail(NAN), 1);
  EXPECT_EQ(binomial_cdf(-1, 10, 0.5), 0);
  EXPECT_EQ(binomial_cdf(10, 10, 0.5), 1);
}

TEST(Moments, MergingEqualsAdding) {
  Moments all, first, second;
  for (int i = 0; i < 100; ++i) {
    const double x = 1e6 + std::sin(i);
    all.add(x), (i < 37 ? first : second).add(x);
  }
  first.merge(second);
  EXPECT_EQ(first.count(), 100);
  EXPECT_NEAR(first.mean(), all.mean(), 1e-6);
  EXPECT_NEAR(first.variance(), all.variance(), 1e-9);
  EXPECT_EQ(first.low(), all.low());
  EXPECT_EQ(first.high(), all.high());
  EXPECT_GT(all.variance(), 0.4);  // not lost to rounding
  EXPECT_TRUE(std::isnan(Moments().mean()));
}

}  // namespace
}  // namespace netmend::stats
