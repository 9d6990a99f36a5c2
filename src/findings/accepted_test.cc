#include "findings/accepted.h"

#include <gtest/gtest.h>

namespace netmend::findings {
namespace {

Finding finding(const std::string& kind, const std::string& where, double value) {
  Finding one;
  one.kind = kind, one.where = where, one.value = value;
  return one;
}

std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& one : findings) all.push_back(one.id());
  return all;
}

using Ids = std::vector<std::string>;

TEST(Accepted, HoldsUntilItEndsOrGetsWorse) {
  std::vector<Finding> found{finding("a", "x", 0.01), finding("b", "", 0.03), finding("c", "y", 0.02),
                             finding("d", "", 0.01)};
  std::vector<Acceptance> accepted{{"a:x", "known", "2026-12-31", 0.01, 1.5},
                                   {"b", "known", "", 0.01, 1.5},
                                   {"c:y", "known", "2026-11-14", 0.02, 1.5},
                                   {"gone:z", "known", "", 0.02, 1.5}};
  SplitFindings split = split_accepted(found, accepted, "2026-11-15");
  EXPECT_EQ(ids(split.accepted), Ids{"a:x"});
  EXPECT_EQ(ids(split.open), (Ids{"b", "c:y", "d"}));
  ASSERT_EQ(split.returned.size(), 2u);
  EXPECT_EQ(split.returned[0].why, "it is 0.03 now and was 0.01 when it was accepted");
  EXPECT_EQ(split.returned[1].why, "accepted until 2026-11-14");
  ASSERT_EQ(split.stale.size(), 1u);
  EXPECT_EQ(split.stale[0].id, "gone:z");
}

TEST(Accepted, TheLastDayStillHoldsAndTheLaterEntryCounts) {
  std::vector<Acceptance> accepted{{"a", "", "2020-01-01", 0.01, 1.5}, {"a", "", "2026-11-15", 0.01, 1.5}};
  EXPECT_EQ(ids(split_accepted({finding("a", "", 0.01)}, accepted, "2026-11-15").accepted), Ids{"a"});
  EXPECT_EQ(ids(split_accepted({finding("a", "", 0.01)}, accepted, "2026-11-16").open), Ids{"a"});
}

TEST(Accepted, WhatWasMergedStillOccursAndHidesNothing) {
  Finding merged = finding("a", "x", 0.01);
  merged.related = {"a:y"};
  SplitFindings split = split_accepted({merged}, {{"a:y", "", "", 0.01, 1.5}}, "2026-11-15");
  EXPECT_EQ(ids(split.open), Ids{"a:x"});
  EXPECT_TRUE(split.stale.empty());
  EXPECT_TRUE(split.returned.empty());
}

TEST(Accepted, EveryFindingIsOnOneSideInItsOrder) {
  for (int mask = 0; mask < 16; ++mask) {
    std::vector<Finding> found;
    std::vector<Acceptance> accepted;
    for (int i = 0; i < 4; ++i) {
      found.push_back(finding("k" + std::to_string(i), "", 0.1));
      if (mask >> i & 1) accepted.push_back({found.back().id(), "", "", 0.1, 1.5});
    }
    SplitFindings split = split_accepted(found, accepted, "2026-11-15");
    EXPECT_EQ(split.open.size() + split.accepted.size(), 4u);
    EXPECT_EQ(split.accepted.size(), accepted.size());
    EXPECT_TRUE(std::is_sorted(split.open.begin(), split.open.end(),
                               [](const Finding& a, const Finding& b) { return a.id() < b.id(); }));
  }
}

TEST(Accepted, ClearlyWorseNeedsTheFactorAndSomethingToNotice) {
  EXPECT_FALSE(clearly_worse(0.014, {"", "", "", 0.01, 1.5}));
  EXPECT_TRUE(clearly_worse(0.016, {"", "", "", 0.01, 1.5}));
  EXPECT_FALSE(clearly_worse(0.001, {"", "", "", 0, 1.5}));
  EXPECT_TRUE(clearly_worse(0.01, {"", "", "", 0, 1.5}));
  EXPECT_FALSE(clearly_worse(0.019, {"", "", "", 0.01, 2}));
}

TEST(Accepted, DaysAreDaysOfTheCalendar) {
  for (const char* day : {"2026-11-15", "2024-02-29", "2026-12-31"}) EXPECT_TRUE(is_day(day)) << day;
  for (const char* day : {"", "2026-2-1", "2026-02-30", "2025-02-29", "2026-13-01", "2026-00-01", "15.11.2026",
                          "2026-11-15 ", "abcd-11-15", "+026-11-15"})
    EXPECT_FALSE(is_day(day)) << day;
  EXPECT_TRUE(is_day(today()));
}

}  // namespace
}  // namespace netmend::findings
