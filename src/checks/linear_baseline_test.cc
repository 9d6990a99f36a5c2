// The linear model against what it can and cannot learn.
#include "checks/linear_baseline.h"

#include <gtest/gtest.h>

#include "checks/data_for_test.h"

namespace netmend::checks {
namespace {

TEST(LinearBaseline, LearnsALineAndNoParity) {
  for (const bool line : {true, false}) {
    Sound sound = Sound::table();
    sound.classes = sound.settings.classes = {"no", "yes"}, sound.settings.outputs = 2;
    for (int part : {0, 1})
      for (int64_t i = 0; i < sound.x[part].size(0); ++i) {
        const double a = sound.x[part][i][0].item<double>(), b = sound.x[part][i][1].item<double>();
        sound.y[part][i] = int64_t(line ? a + b > 0 : a * b > 0);
      }
    for (const bool train : {true, false}) {
      sound.train = train;
      Observed seen = sound.observed();
      const std::optional<stats::Estimate> linear = linear_baseline(seen);
      ASSERT_TRUE(linear);
      if (line)
        EXPECT_GT(linear->value, 0.95) << train;
      else
        EXPECT_LT(linear->value, 0.62) << train;
    }
  }
}

TEST(LinearBaseline, OfTextsIsOneOfWords) {
  Sound sound = Sound::text();
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.x[part].size(0); ++i)  // a word says the class
      sound.x[part][i][int64_t(i % 4)] = 10 + sound.y[part][i].item<int64_t>();
  Observed seen = sound.observed();
  ASSERT_TRUE(linear_baseline(seen));
  EXPECT_GT(linear_baseline(seen)->value, 0.9);
}

TEST(LinearBaseline, OfFewInputsIsUnknown) {
  Sound sound(60, 50);
  Observed seen = sound.observed();
  EXPECT_FALSE(linear_baseline(seen));
}

}  // namespace
}  // namespace netmend::checks
