#include "stats/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace netmend::stats {
namespace {

using Values = std::vector<double>;

TEST(RankCorrelation, FollowsRanksAndSharesThoseOfEqualValues) {
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3, 4}, Values{10, 20, 300, 4000}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3, 4}, Values{4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3}, Values{1, 3, 2}), 0.5);
  EXPECT_NEAR(rank_correlation(Values{1, 2, 3}, Values{1, 1, 2}), std::sqrt(3) / 2, 1e-12);
  EXPECT_TRUE(std::isnan(rank_correlation(Values{1, 2, 3}, Values{5, 5, 5})));
  EXPECT_TRUE(std::isnan(rank_correlation(Values{}, Values{})));
}

TEST(Bootstrap, IsAsWideAsTheIntervalOfAMean) {
  Random random(1);
  Values values;
  double sum = 0, squares = 0;
  for (int i = 0; i < 400; ++i)
    values.push_back(random.normal()), sum += values.back(), squares += values.back() * values.back();
  const Estimate exact = mean(sum, squares, 400), drawn = bootstrap(400, 7, [&](std::span<const size_t> which) {
                                                    double total = 0;
                                                    for (size_t i : which) total += values[i];
                                                    return total / 400;
                                                  });
  EXPECT_NEAR(drawn.value, exact.value, 1e-12);
  EXPECT_NEAR(drawn.low, exact.low, 0.02);
  EXPECT_NEAR(drawn.high, exact.high, 0.02);
}

TEST(Bootstrap, HasNoLimitsWhereTheFigureIsSeldomKnown) {
  const Estimate nothing = bootstrap(0, 1, [](std::span<const size_t>) { return NAN; });
  EXPECT_TRUE(std::isnan(nothing.value) && std::isnan(nothing.low));
  const Estimate same = rank_agreement(Values{1, 2, 3}, Values{5, 5, 5}, 1);
  EXPECT_TRUE(std::isnan(same.low) && std::isnan(same.high));
}

TEST(RankAgreement, HoldsOneForEqualOrderAndZeroForNone) {
  Values a, same, other;
  Random random(3);
  for (int i = 0; i < 60; ++i) a.push_back(i), same.push_back(i * i), other.push_back(random.uniform());
  const Estimate equal = rank_agreement(a, same, 1), none = rank_agreement(a, other, 1);
  EXPECT_DOUBLE_EQ(equal.low, 1);
  EXPECT_LT(none.low, 0);
  EXPECT_GT(none.high, 0);
}

}  // namespace
}  // namespace netmend::stats
