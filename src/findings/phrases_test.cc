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
  EXPECT_EQ(p_text(2e-11), "p = 2e-11");
  EXPECT_EQ(p_text(0.0071), "p = 0.007");
  EXPECT_EQ(p_text(0.00034), "p = 0.0003");
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

TEST(Phrases, FactorsHaveTwoDigits) {
  EXPECT_EQ(times(4.966), "5.0");
  EXPECT_EQ(times(9.949), "9.9");
  EXPECT_EQ(times(9.96), "10");
  EXPECT_EQ(times(10.22), "10");
  EXPECT_EQ(times(1234.5), "1,235");
  EXPECT_EQ(times(3e8), "3e8");
  EXPECT_EQ(times(INFINITY), "Inf");
}

TEST(Phrases, PointsAndPlainNumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(points(0.01), "1 point");
  EXPECT_EQ(points(0.09), "9.0 points");
  EXPECT_EQ(points(0.0004), "0.04 points");
  EXPECT_EQ(points(0), "0 points");
  EXPECT_EQ(plain(0.48499999999999999), "0.485");
  EXPECT_EQ(plain(1867), "1,867");
  EXPECT_EQ(plain(-1867), "-1,867");
  EXPECT_EQ(plain(1.2e7), "1.2e7");
  EXPECT_EQ(plain(-3.5e10), "-3.5e10");
  EXPECT_EQ(plain(1.5e-7), "1.5e-7");
  EXPECT_EQ(plain(1e100), "1e100");
  EXPECT_EQ(plain(-0.0), "0");
  EXPECT_EQ(plain(NAN), "NaN");
}

}  // namespace
}  // namespace netmend::findings
