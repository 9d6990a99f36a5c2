// Numbers in sentences, at the numbers that make sentences false.
#include "findings/phrases.h"

#include <gtest/gtest.h>

#include <cmath>

namespace netmend::findings {
namespace {

TEST(Phrases, CountsAgreeWithTheirWords) {
  EXPECT_EQ(counted(0, "input"), "no inputs");
  EXPECT_EQ(counted(1, "input"), "1 input");
  EXPECT_EQ(counted(2, "input"), "2 inputs");
  EXPECT_EQ(counted(1234567, "input"), "1,234,567 inputs");
  EXPECT_EQ(counted(1, "class", "classes"), "1 class");
  EXPECT_EQ(counted(3, "class", "classes"), "3 classes");
}

TEST(Phrases, APValueIsNeverZeroAndNeverAboveOne) {
  EXPECT_EQ(p_text(0), "p < 1e-12");
  EXPECT_EQ(p_text(1e-300), "p < 1e-12");
  EXPECT_EQ(p_text(5.2e-5), "p = 5e-5");
  EXPECT_EQ(p_text(0.034), "p = 0.034");
  EXPECT_EQ(p_text(1), "p = 1");
  EXPECT_EQ(p_text(NAN), "p unknown");
}

TEST(Phrases, OnlyAllIsAHundredPercentAndOnlyNoneIsZero) {
  EXPECT_EQ(percent(1), "100 %");
  EXPECT_EQ(percent(0), "0 %");
  EXPECT_EQ(percent(0.9998), "99.98 %");
  EXPECT_EQ(percent(9999.0 / 10000), "99.99 %");
  EXPECT_EQ(percent(1.0 / 60000), "0.002 %");
  EXPECT_EQ(percent(0.485), "48.5 %");
  EXPECT_EQ(percent(NAN), "–");
  EXPECT_EQ(percent_range(0.994, 1), "99.4–100");
  EXPECT_EQ(percent_range(1, 1), "100");
  EXPECT_EQ(percent_range(NAN, 1), "unknown");
}

TEST(Phrases, PointsAndPlainNumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(points(0.01), "1 point");
  EXPECT_EQ(points(0.09), "9.0 points");
  EXPECT_EQ(points(0.0004), "0.04 points");
  EXPECT_EQ(points(0), "0 points");
  EXPECT_EQ(plain(0.48499999999999999), "0.485");
  EXPECT_EQ(plain(1867), "1,867");
  EXPECT_EQ(plain(-1867), "-1,867");
  EXPECT_EQ(plain(1.2e7), "1.2e+07");
  EXPECT_EQ(plain(-0.0), "0");
  EXPECT_EQ(plain(NAN), "NaN");
}

}  // namespace
}  // namespace netmend::findings
