#include "base/budget.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"

namespace netmend {
namespace {

TEST(Budget, CountsWorkAndNotTime) {
  Budget budget = Budget::of_work(1000);
  EXPECT_FALSE(budget.timed());
  EXPECT_TRUE(budget.limited());
  EXPECT_EQ(budget.times(100, 50), 10);
  EXPECT_EQ(budget.times(100, 7), 7);
  budget.spend(750);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(budget.left(), 250);
  EXPECT_TRUE(budget.allows(250));
  EXPECT_FALSE(budget.allows(251));
  budget.spend(1e9);
  EXPECT_EQ(budget.left(), 0);
  EXPECT_EQ(budget.times(1, 5), 0);
}

TEST(Budget, PartsAreGivenBack) {
  Budget budget = Budget::of_work(1000);
  Budget part = budget.part(0.4);
  EXPECT_EQ(part.left(), 400);
  part.spend(100);
  EXPECT_EQ(budget.left(), 1000);
  budget.spend(part);
  EXPECT_EQ(budget.left(), 900);
}

TEST(Budget, NamesMeanTheSameEverywhere) {
  EXPECT_LT(Budget::parse("quick").left(), Budget::parse("normal").left());
  EXPECT_LT(Budget::parse("normal").left(), Budget::parse("deep").left());
  EXPECT_EQ(Budget::parse("").left(), Budget::parse("normal").left());
  EXPECT_EQ(Budget::parse("QUICK").name(), "quick");
  EXPECT_FALSE(Budget::unlimited().limited());
  EXPECT_EQ(Budget::unlimited().times(1e12, 77), 77);
  for (const char* wrong : {"fast", "-3s", "0", "nan", "10x"}) EXPECT_THROW(Budget::parse(wrong), InputError) << wrong;
}

TEST(Budget, ATimeIsAClock) {
  Budget budget = Budget::parse("30m");
  EXPECT_TRUE(budget.timed());
  EXPECT_EQ(budget.times(1e30, 9), 9);  // nothing is known about the speed yet
  Budget over = Budget::of_seconds(0);
  EXPECT_EQ(over.left(), 0);
  EXPECT_FALSE(over.allows(1));
  EXPECT_TRUE(over.part(0.5).timed());
}

}  // namespace
}  // namespace netmend
