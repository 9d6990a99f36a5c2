#include "stats/comparisons.h"

#include <gtest/gtest.h>

#include <cmath>

namespace netmend::stats {
namespace {

TEST(Comparisons, WelchByHand) {
  // Two groups of unequal spread: t = −1.2896, 7.637 degrees of freedom; the tail by Simpson's rule.
  const std::vector<double> a{27.5, 21.0, 19.0, 23.6, 17.0, 17.9}, b{27.1, 22.0, 20.8, 23.4, 23.4, 23.5};
  const Comparison found = t_test(a, b);
  EXPECT_NEAR(found.p, 0.234862, 1e-6);
  EXPECT_LT(found.effect, 0);
}

TEST(Comparisons, WithoutSpreadOnlyTheMeansCount) {
  const std::vector<double> a{1, 1, 1}, b{1, 1}, c{2, 2};
  EXPECT_EQ(t_test(a, b).p, 1);
  EXPECT_EQ(t_test(a, c).p, 0);
  EXPECT_TRUE(std::isinf(t_test(a, c).effect));
  EXPECT_EQ(one_against(1, a).p, 1);
  EXPECT_EQ(one_against(1.01, a).p, 0);
  EXPECT_TRUE(std::isnan(t_test(a, std::vector<double>{1}).p));
}

TEST(Comparisons, OneAgainstASampleByHand) {
  // mean 3, deviation √2.5, n 5: t = 4 / (1.5811 · √1.2) = 2.3094, 4 degrees.
  const std::vector<double> sample{1, 2, 3, 4, 5};
  EXPECT_NEAR(one_against(7, sample).p, 0.0821, 5e-4);
  EXPECT_NEAR(one_against(7, sample).effect, 4 / std::sqrt(2.5), 1e-12);
}

TEST(Comparisons, AnovaByHand) {
  // Means 2, 3, 7; between 42 with 2 degrees, within 6 with 6: F = 21.
  const Anova found = one_way_anova({{1, 2, 3}, {2, 3, 4}, {6, 7, 8}, {100}});
  EXPECT_NEAR(found.f, 21, 1e-9);
  EXPECT_NEAR(found.p, 0.00195, 5e-5);
  EXPECT_TRUE(std::isnan(one_way_anova({{1, 2}}).p));
}

TEST(Comparisons, PairsAgainstZero) {
  EXPECT_NEAR(paired_t_test(std::vector<double>{1, 2, 3}).p, 0.0742, 5e-4);
  EXPECT_EQ(paired_t_test(std::vector<double>{0, 0, 0}).p, 1);
  EXPECT_NEAR(paired_power(0.5, 20), 0.5645, 1e-4);
  EXPECT_NEAR(paired_power(-0.8, 15), 0.8213, 1e-4);
  EXPECT_NEAR(paired_power(0, 5), 0.05, 1e-9);
  EXPECT_EQ(paired_power(INFINITY, 5), 1);
}

TEST(Comparisons, HolmIsTheTextbooks) {
  EXPECT_EQ(holm(std::vector<double>{0.01, 0.04, 0.03, 0.005}), (std::vector<double>{0.03, 0.06, 0.06, 0.02}));
}

}  // namespace
}  // namespace netmend::stats
