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

TEST(Distributions, TailsOfCountsAreExact) {
  // 7 of 82 where 1.2 % are expected: a normal approximation would give 2e-9.
  EXPECT_NEAR(binomial_tail(7, 82, 0.012), 6.204e-5, 1e-8);
  EXPECT_EQ(binomial_tail(0, 10, 0.5), 1);
  EXPECT_EQ(binomial_tail(11, 10, 0.5), 0);
  EXPECT_EQ(binomial_tail(3, 10, 0), 0);
  EXPECT_EQ(binomial_tail(10, 10, 1), 1);
  EXPECT_GT(binomial_tail(1000, 1000, 0.5), 0) << "not lost to rounding";
  // The lady tasting tea: 4 of 4 right, of 8 cups of which 4 are.
  EXPECT_NEAR(fisher_tail(4, 4, 4, 8), 1.0 / 70, 1e-12);
  EXPECT_NEAR(fisher_tail(3, 4, 4, 8), 17.0 / 70, 1e-12);
  EXPECT_EQ(fisher_tail(0, 4, 4, 8), 1);
  EXPECT_EQ(fisher_tail(5, 4, 4, 8), 0);
  EXPECT_EQ(fisher_tail(2, 9, 4, 8), 1) << "more than there are";
  EXPECT_NEAR(fisher_tail(7, 82, 67, 5082), binomial_tail(7, 82, 67.0 / 5082), 5e-5) << "few of many";
  EXPECT_LT(fisher_tail(30000, 50000, 50000, 100000), 1e-300);
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
